// Where data comes from: the server, with the token of the page's address; in a report, from the report itself.

const STATIC = document.body.classList.contains("static");
const TOKEN = new URLSearchParams(location.search).get("token") || "";

/** What the server says to a request; throws an Error with its words where it refuses. */
async function ask(path, body) {
  const options = { headers: { "X-Relay-Token": TOKEN }, cache: "no-store" };
  if (body !== undefined) {
    options.method = "POST";
    options.body = JSON.stringify(body);
    options.headers["Content-Type"] = "application/json";
  }
  let response;
  try {
    response = await fetch(`/api/${path}`, options);
  } catch {
    throw new Error("relay-explore does not answer: it has ended, or its machine is away.");
  }
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error || response.statusText);
  return answer;
}

/** A record: an overview, and parts that are fetched once, when they are first shown. */
class Source {
  constructor(overview, fetchPart) {
    this.overview = overview;
    this.fetchPart = fetchPart;
    this.parts = new Map();
  }

  part(path) {
    if (!this.parts.has(path)) {
      const promise = this.fetchPart(path);
      this.parts.set(path, promise);
      promise.catch(() => this.parts.delete(path));
    }
    return this.parts.get(path);
  }

  async snapshot(number) {
    const found = await this.part(`snapshot/${number}`);
    found.lines ??= found.text.replace(/\n$/, "").split("\n");
    return found;
  }

  changes = (step) => this.part(`changes/${step}`);
  graph = (snapshot, part) => this.part(`graph/${snapshot}/${part}`);
}

/** The record of a run of the server's. */
async function served(run) {
  const overview = await ask(`overview?run=${run}`);
  return new Source(overview, (path) => ask(`${path}?run=${run}`));
}

/** The record that a report holds: JSON, compressed, in base64. */
async function embedded() {
  const bytes = Uint8Array.from(atob($("report").textContent), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const { overview, parts } = await new Response(stream).json();
  return new Source(overview, async (path) => parts[path]);
}
