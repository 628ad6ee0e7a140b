//! The API's description in OpenAPI 3.0, generated from the table of routes and the schemas of types.

use http::Method;
use periapt_host_api::problem::Problem;
use schemars::{SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value, json};

use crate::api::{
    failure::PROBLEM,
    routes::{Content, Operation, Parameter, Repeats, Route, table},
    streams::NDJSON,
};

/// The variable parts of paths, with their descriptions.
const PATH_PARAMETERS: &[(&str, &str)] = &[
    ("agent", "an agent's name"),
    ("application", "an application's name"),
    ("digest", "the content's SHA-256: 64 lower-case hex digits"),
    (
        "model",
        "a model's UUID, or its name: the caller's own, or else the only one of that name; or USER/NAME, with the \
         slash escaped",
    ),
    ("number", "a unit's number in its application"),
    ("resource", "a resource's name, as the charm declares it"),
    ("revision", "a revision of a secret"),
    ("secret", "a secret's id: 20 digits 0-9a-v"),
    ("user", "a user's name"),
    ("uuid", "a model's UUID"),
];

/// Returns the OpenAPI document of this version.
pub fn openapi() -> Value {
    let mut generator = SchemaSettings::openapi3().into_generator();
    let problem = generator.subschema_for::<Problem>();
    let mut paths = Map::new();
    for route in table() {
        let mut item = Map::new();
        for operation in &route.operations {
            let method = operation.method.as_str().to_ascii_lowercase();
            item.insert(method, describe(&mut generator, &route, operation));
        }
        paths.insert(route.path.to_owned(), item.into());
    }
    let schemas: Map<String, Value> = generator.take_definitions(true).into_iter().collect();
    json!({
        "openapi": "3.0.3",
        "info": {
            "title": "Periapt controller",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "The API of a controller for clients and agents. Streams are NDJSON; \
                errors are RFC 9457 problems with a stable code.",
            "license": { "name": "Apache-2.0" },
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "responses": {
                "Problem": {
                    "description": "A refusal. The controller has changed nothing.",
                    "content": { PROBLEM: { "schema": problem } },
                },
            },
        },
    })
}

fn describe(generator: &mut SchemaGenerator, route: &Route, operation: &Operation) -> Value {
    let mut described = json!({
        "operationId": operation.id,
        "summary": operation.summary,
        "parameters": parameters(route, operation),
        "responses": {
            "200": response(generator, operation.answer),
            "default": { "$ref": "#/components/responses/Problem" },
        },
    });
    if let Some(object) = described.as_object_mut() {
        if let Some(content) = content(generator, operation.request) {
            object.insert("requestBody".to_owned(), json!({ "required": true, "content": content }));
        }
        if let Some(responses) = object.get_mut("responses").and_then(Value::as_object_mut)
            && matches!(
                (&operation.method, operation.answer),
                (&Method::GET, Content::Archive | Content::Bytes)
            )
        {
            let part = response(generator, operation.answer);
            responses.insert("206".to_owned(), part);
            responses.insert(
                "304".to_owned(),
                json!({ "description": "Not modified: the caller has the present content." }),
            );
        }
    }
    described
}

fn response(generator: &mut SchemaGenerator, answer: Content) -> Value {
    match content(generator, answer) {
        Some(content) => json!({ "description": "Success.", "content": content }),
        None => json!({ "description": "Success." }),
    }
}

fn content(generator: &mut SchemaGenerator, content: Content) -> Option<Value> {
    match content {
        Content::Empty => None,
        Content::Json(schema) => Some(json!({ "application/json": { "schema": schema(generator) } })),
        Content::Lines(schema) => Some(json!({ NDJSON: { "schema": schema(generator) } })),
        Content::Text(kind) => Some(json!({ kind: { "schema": { "type": "string" } } })),
        Content::Archive => {
            Some(json!({ "application/zip": { "schema": { "type": "string", "format": "binary" } } }))
        }
        Content::Bytes => {
            let schema = json!({ "type": "string", "format": "binary" });
            Some(json!({ "application/octet-stream": { "schema": schema } }))
        }
    }
}

fn parameters(route: &Route, operation: &Operation) -> Vec<Value> {
    let variable = route.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let in_path = variable.map(|name| {
        let known = PATH_PARAMETERS.iter().find(|(known, _)| *known == name);
        json!({
            "name": name,
            "in": "path",
            "required": true,
            "description": known.map_or("", |(_, description)| *description),
            "schema": { "type": "string" },
        })
    });
    let in_query = operation.query.iter().map(|Parameter { name, kind, description }| {
        let schema = match *kind {
            "array" => json!({ "type": "array", "items": { "type": "string" } }),
            kind => json!({ "type": kind }),
        };
        json!({ "name": name, "in": "query", "description": description, "schema": schema })
    });
    let in_header = (operation.repeats == Repeats::Once).then(|| {
        json!({
            "name": "Periapt-Request-Id",
            "in": "header",
            "description": "a UUID that the client draws for this request: sent again with the same id within ten \
                minutes, the request is carried out once and gets the same answer",
            "schema": { "type": "string", "format": "uuid" },
        })
    });
    in_path.chain(in_query).chain(in_header).collect()
}
