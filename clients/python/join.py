#!/usr/bin/env python3
"""Joins the modules of assay/ into the one file that is delivered: join.py FILE [DEPENDENCIES].

DEPENDENCIES: a file that says, as a rule of make, which modules FILE is made of.

The file is the modules in the order of MODULES, in one namespace: their imports of each other go, those of the standard
library are merged at its head. So a name stands at the top of one module only, a module imports from modules before it
(for annotations also from later ones, under `if TYPE_CHECKING`), and never under another name. What breaks a rule is
refused with its place. The same modules give the same bytes."""
import ast
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
MODULES = ("constants", "errors", "messages", "states", "address", "connection", "parameters", "distributions", "constraints", "trial", "pruners", "own_sampler", "fixed", "frames",
           "run",
           "notebook", "progress", "results", "attributes", "artifacts", "terminator", "sweep", "moving", "asking", "ask_tell", "study", "methods", "create", "studies", "inside", "sampler",
           "callbacks", "integration", "tables", "kept_models", "importance", "charts", "visualization", "storages", "names")
LINES_MAX = 400


class Module:
    """One module: its text, and what join.py takes from it. Its docstring heads its part of the joined file."""

    def __init__(self, name):
        self.name, self.path = name, os.path.join(HERE, "assay", name + ".py")
        with open(self.path, encoding="utf-8") as f:
            text = f.read()
        self.lines = text.splitlines()
        if len(self.lines) > LINES_MAX:
            self.refuse(LINES_MAX, f"found {len(self.lines)} lines, expected at most {LINES_MAX}")
        self.tree = ast.parse(text, self.path)
        self.doc = ast.get_docstring(self.tree)
        if self.doc is None:
            self.refuse(1, "found no docstring")

    def refuse(self, line, why):
        sys.exit(f"{self.path}:{line}: {why}")

    def body(self, known):
        """The lines without the docstring and the imports at the top, the imports of the standard library as
        {module: names}, and the names that are defined. known: {name: module} of the modules before."""
        gone, imports, defined = set(), {}, {}
        for i, node in enumerate(self.tree.body):
            is_doc = i == 0 and isinstance(node, ast.Expr)
            is_typing = isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                self.take(node, imports, known)
            elif is_typing:
                if not all(isinstance(n, ast.ImportFrom) and n.level == 1 for n in node.body) or node.orelse:
                    self.refuse(node.lineno, "found more than imports of this package under TYPE_CHECKING")
            elif not is_doc:
                for name in names_of(node):
                    if name in known or name in defined:
                        self.refuse(node.lineno, f"{name} stands in {known.get(name, self.name)} already")
                    defined[name] = self.name
                continue
            gone.update(range(node.lineno, node.end_lineno + 1))
        kept = [line for number, line in enumerate(self.lines, 1) if number not in gone]
        return "\n".join(kept).strip("\n"), imports, defined

    def take(self, node, imports, known):
        if any(alias.asname for alias in node.names):
            self.refuse(node.lineno, "found an import under another name")
        if isinstance(node, ast.Import):
            imports.update({alias.name: set() for alias in node.names if alias.name not in imports})
        elif node.level == 0 and node.module != "__future__":
            imports.setdefault("from " + node.module, set()).update(a.name for a in node.names if a.name != "TYPE_CHECKING")
        elif node.level == 1:
            for alias in node.names:
                if known.get(alias.name) != node.module:
                    self.refuse(node.lineno, f"{alias.name} is not in {node.module}, or that module comes later")


def names_of(node):
    """What a statement at the top of a module defines."""
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)]


def wrapped(head, words, tail, width=120):
    """`head` and the words, separated by commas, in lines that align below the first."""
    lines = [head]
    for i, word in enumerate(words):
        piece = word + (tail if i == len(words) - 1 else ",")
        if len(lines[-1]) + 1 + len(piece) > width:
            lines.append(" " * len(head) + piece)
        else:
            lines[-1] += ("" if lines[-1].endswith("(") else " ") + piece
    return "\n".join(lines)


def import_lines(imports):
    for module in sorted(m for m in imports if not m.startswith("from ")):
        yield "import " + module
    for module in sorted(m for m in imports if m.startswith("from ") and imports[m]):
        names = sorted(imports[module])
        one = f"{module} import {', '.join(names)}"
        yield one if len(one) <= 120 else wrapped(f"{module} import (", names, ")")


def joined():
    """The text of the joined file."""
    head = Module("__init__")
    strange = {name[:-3] for name in os.listdir(os.path.join(HERE, "assay")) if name.endswith(".py")} ^ {*MODULES, "__init__"}
    if strange:
        head.refuse(1, f"found {', '.join(sorted(strange))} in this folder or in MODULES, expected in both")
    parts, imports, known = [], {}, {}
    for name in MODULES:
        module = Module(name)
        body, its_imports, defined = module.body(known)
        for key, names in its_imports.items():
            imports.setdefault(key, set()).update(names)
        known.update(defined)
        parts.append("\n".join("# " + line if line else "#" for line in module.doc.splitlines()) + "\n\n" + body)
    public, _, _ = head.body(known)
    quoted = '"""' + head.doc + '\n"""'
    return "\n\n\n".join(["\n".join([quoted, "from __future__ import annotations", "", *import_lines(imports), "", public]),
                          *parts]) + "\n"


def write(path, text):
    if os.path.lexists(path) and not os.path.isfile(path):
        sys.exit(f"{path}: found something that is no regular file, expected a file or nothing")
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit("usage: join.py FILE [DEPENDENCIES]")
    write(sys.argv[1], joined())
    if len(sys.argv) == 3:
        modules = (os.path.join(HERE, "assay", name + ".py").replace(" ", "\\ ") for name in ("__init__", *MODULES))
        write(sys.argv[2], f"{sys.argv[1]}: {' '.join(modules)}\n")
