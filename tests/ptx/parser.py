"""PTX text: kernels, their parameters and registers, and statements with operands. Scopes (`{ .reg ...; }`) have their
own registers and labels. Source: PTX ISA 8.7, chapters 4 (syntax), 5 (state spaces, types) and 6 (operands)."""

from __future__ import annotations

import re
from dataclasses import dataclass, field


class PtxError(Exception):
    """What is not in the subset that the interpreter knows."""


@dataclass(frozen=True)
class Address:
    """`[base + offset]`; `coordinates`: those of a copy of a tile, `[base, {x, y}]`."""

    base: str
    offset: int = 0
    coordinates: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"[{self.base}+{self.offset}]"


Operand = str | Address | tuple[str, ...]
"""A register, a number or a name; an address; a vector."""


@dataclass(frozen=True)
class Instruction:
    """One statement. `guard`: the predicate that it asks for, and whether it asks for its opposite."""

    opcode: str
    operands: tuple[Operand, ...]
    guard: tuple[str, bool] | None
    line: int

    @property
    def parts(self) -> list[str]:
        """The opcode's words."""
        return self.opcode.split(".")

    def __str__(self) -> str:
        return f"line {self.line}: {self.opcode} {', '.join(map(str, self.operands))}"


@dataclass
class Kernel:
    """An entry: code, where its labels are, and the type of each kind of registers (`%r` of `%r12`) or register."""

    name: str
    parameters: list[str]
    threads: int
    registers: dict[str, str] = field(default_factory=dict[str, str])
    code: list[Instruction] = field(default_factory=list[Instruction])
    labels: dict[str, int] = field(default_factory=dict[str, int])

    def type_of(self, register: str) -> str:
        """The type that a register was declared with."""
        found = self.registers.get(register) or self.registers.get(register.rstrip("0123456789"))
        if found is None:
            raise PtxError(f"{self.name}: no register {register}")
        return found


@dataclass
class Module:
    """What a text has, and the chip that it is for."""

    target: str
    kernels: dict[str, Kernel]
    shared: str | None
    """The name of dynamic shared memory."""


ENTRY = re.compile(r"\.visible \.entry (\w+)\(([^)]*)\)((?:\s*\.\w+ [\d, ]+)*)\s*\{")
LABEL = re.compile(r"([$\w]+):(?!:)")
DECLARED = re.compile(r"\.reg \.(\w+)\s+(.*)", re.DOTALL)
DIRECTIVES = r"\.(version|target|address_size|extern|visible)\b"


def parse(text: str) -> Module:
    """Read a module. Raises PtxError with what is not known."""
    text = re.sub(r"//[^\n]*", "", text)
    (target,) = re.findall(r"^\.target (\w+)", text, re.MULTILINE)
    unknown = [word for word in re.findall(r"^\.(\w+)", text, re.MULTILINE) if not re.match(DIRECTIVES, f".{word}")]
    unknown = [word for word in unknown if word not in ("reqntid", "minnctapersm", "maxnreg")]
    if unknown:
        raise PtxError(f"the directive .{unknown[0]} is not known")
    shared = re.findall(r"^\.extern \.shared \.align \d+ \.b8 (\w+)\[\];", text, re.MULTILINE)
    kernels: dict[str, Kernel] = {}
    for match in ENTRY.finditer(text):
        threads = re.search(r"\.reqntid (\d+)\s*(?:$|\n|\.)", match[3] + "\n")
        if threads is None:
            raise PtxError(f"{match[1]}: has no .reqntid of one dimension")
        parameters = re.findall(r"\.param \.u64 [^,]*?(\w+)\s*(?:,|$)", match[2].strip())
        kernel = Kernel(match[1], parameters, int(threads[1]))
        Reader(text, match.end(), kernel).body()
        kernels[kernel.name] = kernel
    return Module(target, kernels, shared[0] if shared else None)


class Reader:
    """Reads one body, from behind its brace."""

    def __init__(self, text: str, start: int, kernel: Kernel):
        self.text, self.at, self.kernel = text, start, kernel
        self.scopes: list[tuple[int, dict[str, str]]] = []
        self.count = 0

    def body(self) -> None:
        """All statements up to the brace that ends the kernel."""
        while True:
            self.at = self.start_of_statement()
            char = self.text[self.at]
            if char == "{":
                self.count += 1
                self.scopes.append((self.count, {}))
                self.at += 1
            elif char == "}":
                self.at += 1
                if not self.scopes:
                    return
                self.scopes.pop()
            elif label := LABEL.match(self.text, self.at):
                self.at = label.end()
                self.kernel.labels[self.declare(label[1])] = len(self.kernel.code)
            else:
                end = self.text.index(";", self.at)
                line = self.text.count("\n", 0, self.at) + 1
                self.statement(self.text[self.at : end].strip(), line)
                self.at = end + 1

    def start_of_statement(self) -> int:
        """The first place that is no blank."""
        at = self.at
        while self.text[at].isspace():
            at += 1
        return at

    def declare(self, name: str) -> str:
        """A name of the innermost scope."""
        if not self.scopes:
            return name
        number, names = self.scopes[-1]
        return names.setdefault(name, f"{name}.{number}.")

    def known(self, name: str) -> str:
        """A name as it was declared. Labels may follow their uses: those of scopes are written before them here."""
        return next((names[name] for _, names in reversed(self.scopes) if name in names), name)

    def statement(self, text: str, line: int) -> None:
        """A declaration or an instruction."""
        if text.startswith(".pragma"):
            return
        if declared := DECLARED.fullmatch(text):
            for name in declared[2].split(","):
                self.kernel.registers[self.declare(name.strip().partition("<")[0])] = declared[1]
            return
        match = re.fullmatch(r"(?:@(!?)([%\w]+)\s+)?([a-z][\w.:]*)\s*(.*)", text, re.DOTALL)
        if match is None:
            raise PtxError(f"{self.kernel.name}: line {line}: {text!r} is not an instruction")
        guard = (self.known(match[2]), match[1] == "!") if match[2] else None
        operands = tuple(self.operand(part) for part in split(match[4]))
        self.kernel.code.append(Instruction(match[3], operands, guard, line))

    def operand(self, text: str) -> Operand:
        """An operand, with its names as they were declared."""
        if text.startswith("{"):
            return tuple(self.known(part) for part in split(text[1:-1]))
        if not text.startswith("["):
            return self.known(text)
        base, *rest = split(text[1:-1])
        match = re.fullmatch(r"([%$\w]+)\s*(?:\+\s*(-?\d+))?", base)
        if match is None:
            raise PtxError(f"{self.kernel.name}: the address {text} is not known")
        coordinates = tuple(self.known(part) for part in split(rest[0][1:-1])) if rest else ()
        return Address(self.known(match[1]), int(match[2] or 0), coordinates)


def split(text: str) -> list[str]:
    """Parts between commas that are in no brackets."""
    found, depth, start = list[str](), 0, 0
    for at, char in enumerate(text):
        depth += (char in "[{") - (char in "]}")
        if char == "," and depth == 0:
            found.append(text[start:at].strip())
            start = at + 1
    last = text[start:].strip()
    return [*found, last] if last else found
