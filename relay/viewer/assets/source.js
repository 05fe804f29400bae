// The source of the data: the server, which is sent the token of the page's address; or, in a report, the page itself.

const STATIC = document.body.classList.contains("static");
const TOKEN = new URLSearchParams(location.search).get("token") || "";

/** Send a request to the server and return its JSON; throws an Error with the server's message if it refuses. */
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

/** A record: its overview, and its parts, each fetched when it is first shown and then kept. */
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

/** The record of the server's run with this number. */
async function served(run) {
  const overview = await ask(`overview?run=${run}`);
  return new Source(overview, (path) => ask(`${path}?run=${run}`));
}

/** The record in a report, which is compressed JSON in base64. */
async function embedded() {
  const bytes = Uint8Array.from(atob($("report").textContent), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const { overview, parts } = await new Response(stream).json();
  return new Source(overview, async (path) => parts[path]);
}
