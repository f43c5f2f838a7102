"""The API's contract as the server hands it out (/openapi.json): operations by name, schemas by reference, and
a check of any answer against what the document promises. Standard library only."""
import datetime
import json
import re
import urllib.request

KINDS = {"integer": int, "number": (int, float), "string": str, "boolean": bool, "object": dict, "array": list}
LIMITS = {
    "minimum": lambda v, limit: v >= limit, "maximum": lambda v, limit: v <= limit,
    "exclusiveMinimum": lambda v, limit: v > limit,
    "minLength": lambda v, limit: len(v) >= limit, "maxLength": lambda v, limit: len(v) <= limit,
    "minItems": lambda v, limit: len(v) >= limit, "maxItems": lambda v, limit: len(v) <= limit,
    "minProperties": lambda v, limit: len(v) >= limit, "maxProperties": lambda v, limit: len(v) <= limit,
    "pattern": lambda v, limit: re.search(limit, v),
}
LIMIT_KINDS = {"minimum": (int, float), "maximum": (int, float), "exclusiveMinimum": (int, float), "minLength": str, "maxLength": str, "pattern": str,
               "minItems": list, "maxItems": list, "minProperties": dict, "maxProperties": dict}


def is_kind(value, kind):
    if kind == "null":
        return value is None
    if isinstance(value, bool):
        return kind == "boolean"
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()  # as JSON Schema has it
    return isinstance(value, KINDS[kind])


class Operation:
    """One method of one path: .method, .path, .parameters (resolved), .responses, .body_type, .body_schema."""

    def __init__(self, contract, method, path, shared, op):
        self.name, self.method, self.path = op["operationId"], method.upper(), path
        self.parameters = [contract.resolve(p) for p in shared + op.get("parameters", [])]
        self.responses = {int(k): contract.resolve(v) for k, v in op["responses"].items()}
        self.is_open = op.get("security") == []
        self.roles = op.get("x-roles", [])
        content = op.get("requestBody", {}).get("content", {})
        self.body_type, body = next(iter(content.items()), (None, {}))
        self.body_schema = body.get("schema")


class Contract:
    def __init__(self, url):
        with urllib.request.urlopen(url + "/openapi.json") as f:
            self.doc = json.load(f)
        self.operations = {}
        for path, item in self.doc["paths"].items():
            for method, op in item.items():
                if method != "parameters":
                    made = Operation(self, method, path, item.get("parameters", []), op)
                    self.operations[made.name] = made

    def resolve(self, node):
        while "$ref" in node:
            target = self.doc
            for part in node["$ref"][2:].split("/"):
                target = target[part]
            node = target
        return node

    def check_answer(self, op, status, kind, content):
        """The status is documented, the content is of the documented type and fits its schema. Returns the value."""
        assert status in op.responses, f"{op.name}: {status} is not documented: {content[:300]}"
        described = op.responses[status].get("content")
        if not described:
            assert not content, (op.name, status, content)
            return None
        assert kind in described, (op.name, status, kind)
        if not kind.endswith("json"):
            return content
        value = json.loads(content)
        self.validate(value, described[kind]["schema"], op.name)
        return value

    def validate(self, value, schema, at):
        """AssertionError that names the place where value does not fit."""
        schema = self.resolve(schema)
        for part in schema.get("allOf", []):
            self.validate(value, part, at)
        if "oneOf" in schema:
            fits, why = 0, []
            for part in schema["oneOf"]:
                try:
                    self.validate(value, part, at)
                    fits += 1
                except AssertionError as e:
                    why.append(str(e))
            assert fits == 1, f"{at}: {value!r} fits {fits} of oneOf: {why}"
        self._validate_scalar(value, schema, at)
        if isinstance(value, dict):
            self._validate_object(value, schema, at)
        if isinstance(value, list) and "items" in schema:
            for i, inner in enumerate(value):
                self.validate(inner, schema["items"], f"{at}[{i}]")

    def is_valid(self, value, schema):
        try:
            self.validate(value, schema, "")
            return True
        except AssertionError:
            return False

    @staticmethod
    def _validate_scalar(value, schema, at):
        if "type" in schema:
            kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
            assert any(is_kind(value, k) for k in kinds), f"{at}: {value!r} is not {kinds}"
        if "enum" in schema:
            assert value in schema["enum"], f"{at}: {value!r} is not in {schema['enum']}"
        if "const" in schema:
            assert value == schema["const"], f"{at}: {value!r} is not {schema['const']}"
        for name, holds in LIMITS.items():
            if name in schema and isinstance(value, LIMIT_KINDS[name]) and not isinstance(value, bool):
                assert holds(value, schema[name]), f"{at}: {str(value)[:80]!r}: {name} is {schema[name]}"
        if schema.get("format") == "date-time" and isinstance(value, str):
            datetime.datetime.strptime(value, "%Y-%m-%dT%H:%M:%S.%fZ")

    def _validate_object(self, value, schema, at):
        for key in schema.get("required", []):
            assert key in value, f"{at}: {key} is missing in {value}"
        known, extra = schema.get("properties", {}), schema.get("additionalProperties")
        for key, inner in value.items():
            if "propertyNames" in schema:
                self.validate(key, schema["propertyNames"], f"{at}, the name")
            if key in known:
                self.validate(inner, known[key], f"{at}.{key}")
            elif isinstance(extra, dict):
                self.validate(inner, extra, f"{at}.{key}")
            else:
                assert extra is not False, f"{at}: {key} is not allowed"
