//! The parts of a route.

use std::convert::Infallible;

use axum::routing::{MethodFilter, MethodRouter, on};
use http::Method;
use periapt_model::Right;
use schemars::{JsonSchema, Schema, SchemaGenerator};

use crate::state::ControllerState;

/// The content of a request or an answer.
#[derive(Clone, Copy)]
pub(crate) enum Content {
    /// No content.
    Empty,
    /// One value.
    Json(fn(&mut SchemaGenerator) -> Schema),
    /// Several values, one in each line.
    Lines(fn(&mut SchemaGenerator) -> Schema),
    /// A text of this media type.
    Text(&'static str),
    /// A charm's archive.
    Archive,
    /// A file.
    Bytes,
}

/// A key of a query.
pub(crate) struct Parameter {
    pub(crate) name: &'static str,
    /// `string`, `integer`, `boolean`, or `array` of strings.
    pub(crate) kind: &'static str,
    pub(crate) description: &'static str,
}

/// A method on a path.
pub(crate) struct Operation {
    pub(crate) method: Method,
    pub(crate) id: &'static str,
    pub(crate) summary: &'static str,
    /// The right that a caller needs.
    pub(crate) right: Right,
    pub(crate) query: &'static [Parameter],
    pub(crate) request: Content,
    pub(crate) answer: Content,
    pub(crate) repeats: Repeats,
}

/// The treatment of a request that is sent again.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeats {
    /// The request is carried out each time.
    Each,
    /// A request with the header `Periapt-Request-Id` is carried out once.
    Once,
}

/// A path with all its operations.
pub(crate) struct Route {
    pub(crate) path: &'static str,
    pub(crate) operations: Vec<Operation>,
    pub(super) handlers: MethodRouter<ControllerState, Infallible>,
}

impl Route {
    pub(super) fn new(path: &'static str) -> Self {
        Self { path, operations: Vec::new(), handlers: MethodRouter::new() }
    }

    pub(super) fn on<H, T>(mut self, operation: Operation, handler: H) -> Self
    where
        H: axum::handler::Handler<T, ControllerState>,
        T: 'static,
    {
        if let Ok(filter) = MethodFilter::try_from(operation.method.clone()) {
            self.handlers = self.handlers.merge(on(filter, handler));
        }
        self.operations.push(operation);
        self
    }
}

impl Operation {
    pub(super) fn new(
        right: Right,
        method: Method,
        id: &'static str,
        summary: &'static str,
        answer: Content,
    ) -> Self {
        Self {
            method,
            id,
            summary,
            right,
            query: &[],
            request: Content::Empty,
            answer,
            repeats: Repeats::Each,
        }
    }

    pub(super) fn get(right: Right, id: &'static str, summary: &'static str, answer: Content) -> Self {
        Self::new(right, Method::GET, id, summary, answer)
    }

    pub(super) fn request(mut self, request: Content) -> Self {
        self.request = request;
        self
    }

    /// Carries a request with an id out once, however often it is sent.
    pub(super) fn once(mut self) -> Self {
        self.repeats = Repeats::Once;
        self
    }

    pub(super) fn query(mut self, query: &'static [Parameter]) -> Self {
        self.query = query;
        self
    }
}

pub(super) fn json<T: JsonSchema>() -> Content {
    Content::Json(|generator| generator.subschema_for::<T>())
}

pub(super) fn lines<T: JsonSchema>() -> Content {
    Content::Lines(|generator| generator.subschema_for::<T>())
}
