"""Validates STAC documents against the official schemas, by Python's jsonschema.

validate.py FIXTURES FILE...: what is wrong goes to standard output, one line each.
Exit code 77: the module is not there."""
import json
import pathlib
import sys

try:
    from jsonschema import Draft7Validator
    from referencing import Registry, Resource
    from referencing.jsonschema import DRAFT7
except ImportError:
    sys.exit(77)

root = pathlib.Path(sys.argv[1])
at = {
    "stac-spec-1.1.0": "https://schemas.stacspec.org/v1.1.0/",
    "extensions": "https://stac-extensions.github.io/",
    "geojson": "https://geojson.org/schema/",
    "projjson": "https://proj.org/schemas/v0.7/",
}
registry = Registry()
for folder, address in at.items():
    for path in (root / folder).rglob("*.json"):
        schema = json.loads(path.read_text())
        schema.pop("$id", None)
        name = path.relative_to(root / folder).as_posix().replace("projjson-v0.7.", "projjson.")
        registry = registry.with_resource(address + name, Resource(contents=schema, specification=DRAFT7))

kinds = {"Feature": "item-spec/json-schema/item.json", "Catalog": "catalog-spec/json-schema/catalog.json", "Collection": "collection-spec/json-schema/collection.json"}
bad = 0
for file in sys.argv[2:]:
    document = json.loads(pathlib.Path(file).read_text())
    for address in [at["stac-spec-1.1.0"] + kinds[document["type"]], *document.get("stac_extensions", [])]:
        for error in Draft7Validator({"$ref": address}, registry=registry).iter_errors(document):
            bad += 1
            print(f"{file}: {address}: {error.json_path}: {error.message}"[:300])
sys.exit(bool(bad))
