#!/usr/bin/env python3
"""Make docs/api.md, the API reference as a page: reference.py OPENAPI.json docs/api.md. --check only compares.
build/api/openapi.json is api/openapi.yaml as JSON."""
import json
import sys

METHODS = ("get", "post", "put", "patch", "delete", "head")


def one_line(text):
    return " ".join((text or "").split())


def cell(text):
    return one_line(text).replace("|", "\\|")


class Page:
    def __init__(self, doc):
        self.doc, self.out = doc, []

    def resolve(self, node):
        while isinstance(node, dict) and "$ref" in node:
            target = self.doc
            for part in node["$ref"][2:].split("/"):
                target = target[part]
            node = target
        return node

    def kind(self, schema):
        """A schema's type in a few words; named schemas are links."""
        if "$ref" in schema:
            name = schema["$ref"].rsplit("/", 1)[1]
            return f"[{name}](#{name.lower()})"
        for word in ("oneOf", "anyOf", "allOf"):
            if word in schema:
                return " or ".join(dict.fromkeys(self.kind(s) for s in schema[word]))
        if "const" in schema:
            return f"`{json.dumps(schema['const'])}`"
        if "enum" in schema:
            return ", ".join(f"`{v}`" for v in schema["enum"])
        kinds = schema.get("type", "any")
        kinds = kinds if isinstance(kinds, list) else [kinds]
        words = []
        for kind in kinds:
            if kind == "array":
                words.append("list of " + self.kind(schema.get("items", {})))
            elif kind == "object" and isinstance(schema.get("additionalProperties"), dict):
                words.append("object of " + self.kind(schema["additionalProperties"]))
            else:
                words.append(kind)
        return " or ".join(words) + self.bounds(schema)

    @staticmethod
    def bounds(schema):
        words = [f"{label} {json.dumps(schema[key])}" for key, label in (
            ("minimum", "at least"), ("exclusiveMinimum", "above"), ("maximum", "at most"), ("exclusiveMaximum", "below"),
            ("minLength", "length at least"), ("maxLength", "length at most"), ("minItems", "items at least"),
            ("maxItems", "items at most"), ("default", "default")) if key in schema]
        return f" ({', '.join(words)})" if words else ""

    def fields(self, schema):
        required = schema.get("required", [])
        self.out += ["| field | type | |", "| --- | --- | --- |"]
        for name, field in schema.get("properties", {}).items():
            note = cell(field.get("description") or self.resolve(field).get("description", "") if "$ref" not in field
                        else field.get("description", ""))
            must = "required. " if name in required else ""
            self.out.append(f"| `{name}` | {cell(self.kind(field))} | {must + note} |".replace("  ", " "))
        self.out.append("")

    def operation(self, path, method, op, shared):
        out = self.out
        out += [f"### {op['operationId']}", "", f"`{method.upper()} {path}`", "", op["summary"] + ("" if op["summary"].endswith("?") else "."), ""]
        if op.get("description"):
            out += [op["description"].strip(), ""]
        roles = op.get("x-roles")
        out += ["Roles: " + (", ".join(f"`{r}`" for r in roles) if roles else "anybody, without a token") + ".", ""]
        parameters = [self.resolve(p) for p in shared + op.get("parameters", [])]
        if parameters:
            out += ["| parameter | in | type | |", "| --- | --- | --- | --- |"]
            for p in parameters:
                must = "required. " if p.get("required") and p["in"] != "path" else ""
                out.append(f"| `{p['name']}` | {p['in']} | {cell(self.kind(p['schema']))} | {must}{cell(p.get('description'))} |")
            out.append("")
        body = self.resolve(op.get("requestBody", {}))
        for media, content in body.get("content", {}).items():
            out += [f"Body: `{media}`, {self.kind(content.get('schema', {}))}.", ""]
            for example in content.get("examples", {}).values():
                out += [example.get("summary", "Example") + ":", "", "```json",
                        json.dumps(example["value"], indent=2, ensure_ascii=False), "```", ""]
        out += ["| status | answer | |", "| --- | --- | --- |"]
        for status, answer in op["responses"].items():
            answer = self.resolve(answer)
            kinds = ", ".join(self.kind(c.get("schema", {})) for c in answer.get("content", {}).values())
            out.append(f"| {status} | {cell(kinds)} | {cell(answer.get('description'))} |")
        out.append("")

    def make(self):
        doc, out = self.doc, self.out
        out += ["<!-- Made from api/openapi.yaml by api/reference.py. Do not edit. -->", "", "# The HTTP API", "",
                doc["info"]["description"].strip(), ""]
        for tag in doc["tags"]:
            out += [f"## {tag['name']}", ""] + ([tag["description"] + ".", ""] if tag.get("description") else [])
            for path, item in doc["paths"].items():
                for method in item:
                    if method in METHODS and tag["name"] in item[method].get("tags", []):
                        self.operation(path, method, item[method], item.get("parameters", []))
        out += ["## Schemas", ""]
        for name, schema in doc["components"]["schemas"].items():
            out += [f"### {name}", ""] + ([schema["description"].strip(), ""] if schema.get("description") else [])
            if schema.get("properties"):
                self.fields(schema)
            elif all(s.get("properties") for s in schema.get("oneOf", [{}])):
                out += ["One of these.", ""]
                for form in schema["oneOf"]:
                    self.fields(form)
            else:
                out += [self.kind(schema) + ".", ""]
        return "\n".join(out).rstrip() + "\n"


def main():
    names = [a for a in sys.argv[1:] if a != "--check"]
    page = Page(json.load(open(names[0]))).make()
    if "--check" in sys.argv:
        if open(names[1]).read() != page:
            sys.exit(f"{names[1]} does not follow from api/openapi.yaml; make it with ./dev fmt")
        return
    open(names[1], "w").write(page)


main()
