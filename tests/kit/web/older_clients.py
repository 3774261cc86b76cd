"""What a client that knows an older description of an API would meet in a newer one, as sentences."""


def breaks(old, new):
    """Return what the newer description has lost, or demands. Additions are none."""
    return [*_of_paths(old, new)]


def _of_paths(old, new):
    for path, place in old["paths"].items():
        for method, operation in place.items():
            if method == "servers":
                continue
            where, now = f"{method.upper()} {path}", new["paths"].get(path, {}).get(method)
            if now is None:
                yield f"{where} is gone"
                continue
            if place.get("servers") != new["paths"][path].get("servers"):
                yield f"{where} has moved"
            yield from _of_parameters(where, operation, now, old, new)
            yield from _of_bodies(where, operation, now, old, new)
            yield from _of_answers(where, operation, now, old, new)


def _of_parameters(where, operation, now, old, new):
    before, after = ({each["name"]: each for each in side["parameters"]} for side in (operation, now))
    for name, parameter in before.items():
        if name not in after:
            yield f"{where} has no parameter {name}"
            continue
        yield from _refuses(f"{where} {name}", parameter["schema"], after[name]["schema"], old, new)
    yield from (
        f"{where} demands {name}"
        for name, parameter in after.items()
        if parameter["required"] and not before.get(name, {"required": False})["required"]
    )


def _of_bodies(where, operation, now, old, new):
    if "requestBody" not in operation:
        if now.get("requestBody", {}).get("required"):
            yield f"{where} demands a body"
        return
    before, after = (side.get("requestBody", {}).get("content", {}) for side in (operation, now))
    for media, content in before.items():
        if media not in after:
            yield f"{where} takes no {media}"
            continue
        yield from _refuses(f"{where} body", content["schema"], after[media]["schema"], old, new)


def _of_answers(where, operation, now, old, new):
    for status, answer in operation["responses"].items():
        if status not in now["responses"]:
            yield f"{where} never answers {status}"
            continue
        for media, content in answer.get("content", {}).items():
            after = now["responses"][status].get("content", {})
            if media not in after:
                yield f"{where} {status} is no {media}"
                continue
            yield from _lacks(f"{where} {status}", content["schema"], after[media]["schema"], old, new)


def _resolved(schema, document):
    found = schema
    while "$ref" in found:
        found = document["components"]["schemas"][found["$ref"].rpartition("/")[2]]
    return found


def _types(schema):
    said = schema.get("type")
    return {said} if isinstance(said, str) else set(said or ())


def _choices(schema):
    """Return the alternatives of a schema."""
    return schema.get("anyOf", [schema])


def _refuses(where, before, after, old, new):  # noqa: C901, PLR0912 - one question after another
    """Yield what was taken and is refused."""
    before, after = _resolved(before, old), _resolved(after, new)
    if before == after:
        return
    if len(_choices(before)) > 1 or len(_choices(after)) > 1:
        for each in _choices(before):
            if all([*_refuses(where, each, other, old, new)] for other in _choices(after)):
                yield f"{where} refuses {each}"
        return
    taken = _types(after) | ({"integer"} if "number" in _types(after) else set())
    if taken and not _types(before) <= taken:
        yield f"{where} is no {before.get('type')}"
    for key, sign in (("minimum", 1), ("maximum", -1), ("minLength", 1), ("maxLength", -1)):
        if key in after and (key not in before or sign * after[key] > sign * before[key]):
            yield f"{where} has a narrower {key}"
    if "enum" in after and not set(map(str, before.get("enum", ["anything"]))) <= set(map(str, after["enum"])):
        yield f"{where} refuses words that it took"
    if missing := set(after.get("required", ())) - set(before.get("required", ())):
        yield f"{where} demands {sorted(missing)}"
    properties = after.get("properties", {})
    for name, schema in before.get("properties", {}).items():
        if name in properties:
            yield from _refuses(f"{where}.{name}", schema, properties[name], old, new)
        elif after.get("additionalProperties") is False:
            yield f"{where} refuses {name}"
    if "items" in before and "items" in after:
        yield from _refuses(f"{where}[]", before["items"], after["items"], old, new)


def _lacks(where, before, after, old, new):
    """Yield what was told and is not told."""
    before, after = _resolved(before, old), _resolved(after, new)
    if before == after:
        return
    if len(_choices(before)) > 1 or len(_choices(after)) > 1:
        for each in _choices(after):
            if all([*_lacks(where, other, each, old, new)] for other in _choices(before)):
                yield f"{where} may be {each}"
        return
    if _types(before) and not _types(after) <= _types(before):
        yield f"{where} may be {after.get('type')}"
    for name, schema in before.get("properties", {}).items():
        if name not in after.get("properties", {}):
            yield f"{where} has no {name}"
            continue
        yield from _lacks(f"{where}.{name}", schema, after["properties"][name], old, new)
    if lost := set(before.get("required", ())) - set(after.get("required", ())):
        yield f"{where} may lack {sorted(lost)}"
    if "items" in before and "items" in after:
        yield from _lacks(f"{where}[]", before["items"], after["items"], old, new)
