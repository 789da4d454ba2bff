//! What a request brings, read with our own words for what is wrong in it.
//!
//! JSON knows one kind of number, so `2.0` is a whole one wherever a whole number is wanted.

use std::fmt::{self, Display};

use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, RawPathParams, RawQuery, Request};
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use serde::de::value::{SeqDeserializer, StringDeserializer};
use serde::de::{
    self, DeserializeOwned, DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, Visitor,
};
use serde_json::Value;

use crate::dashboard::loading::Refusal;
use crate::words::escaped_text::visible;

/// A body of JSON, said to be so. A form of a web page cannot say that, so every route that takes a body takes this, but
/// for that of Locust's form.
pub struct Body<T>(pub T);

/// What stands after the `?` of a URL.
pub struct Query<T>(pub T);

/// The parts of a path that have names.
pub struct PathParts<T>(pub T);

/// A value and the name of its field, which the whole body does not have.
struct Field {
    name: Option<String>,
    value: Input,
}

enum Input {
    Json(Value),
    /// Of a URL, where all values are text.
    Text(String),
    Fields(Vec<(String, Input)>),
}

/// What is wrong, as a sentence with a remedy.
#[derive(Debug)]
struct Wrong(String);

struct Fields {
    left: std::vec::IntoIter<(String, Input)>,
    value: Option<Field>,
}

/// All whole numbers up to here are numbers of JSON (RFC 8259 6).
const MAX_WHOLE: f64 = 9_007_199_254_740_992.0;

/// Of a name that is told back.
const MAX_NAME: usize = 40;

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Body<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, state: &S) -> Result<Self, Refusal> {
        if !is_json(request.headers()) {
            let sentence = "the body must be JSON: send it with `content-type: application/json`";
            return Err((StatusCode::UNSUPPORTED_MEDIA_TYPE, sentence.to_owned()));
        }
        let bytes = Bytes::from_request(request, state).await;
        let bytes = bytes.map_err(|refused| (refused.status(), refused.body_text()))?;
        let value = serde_json::from_slice(&bytes).map_err(|error| {
            let (line, column) = (error.line(), error.column());
            bad(Wrong(format!(
                "the body is no JSON at line {line}, column {column}: send an object, as in {{}}"
            )))
        })?;
        read(Input::Json(value)).map(Body)
    }
}

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Query<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        let Ok(RawQuery(query)) = RawQuery::from_request_parts(parts, state).await;
        let query = query.unwrap_or_default();
        let pairs = form_urlencoded::parse(query.as_bytes()).into_owned();
        read(Input::Fields(pairs.map(|(name, text)| (name, Input::Text(text))).collect()))
            .map(Query)
    }
}

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for PathParts<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        let raw = RawPathParams::from_request_parts(parts, state).await;
        let raw = raw.map_err(|refused| (refused.status(), refused.body_text()))?;
        let pairs = raw.iter().map(|(name, text)| (name.to_owned(), Input::Text(text.to_owned())));
        read(Input::Fields(pairs.collect())).map(PathParts)
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let kind = kind.and_then(|kind| kind.split(';').next());
    kind.is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
}

fn read<T: DeserializeOwned>(value: Input) -> Result<T, Refusal> {
    T::deserialize(Field { name: None, value }).map_err(bad)
}

fn bad(wrong: Wrong) -> Refusal {
    (StatusCode::BAD_REQUEST, wrong.0)
}

fn named(name: &str) -> String {
    visible(&name.chars().take(MAX_NAME).collect::<String>())
}

impl Field {
    fn wrong(&self, wanted: &str) -> Wrong {
        match &self.name {
            Some(name) => Wrong(format!("`{}` must be {wanted}: correct it", named(name))),
            None => Wrong(format!("the body must be {wanted}: send one, as in {{}}")),
        }
    }

    fn whole(&self) -> Option<i64> {
        let of_float = |number: f64| {
            let is_whole = number.fract() == 0.0 && number.abs() <= MAX_WHOLE;
            is_whole.then_some(number as i64)
        };
        match &self.value {
            Input::Json(Value::Number(number)) => {
                number.as_i64().or_else(|| number.as_f64().and_then(of_float))
            }
            Input::Text(text) => {
                text.trim().parse().ok().or_else(|| text.trim().parse().ok().and_then(of_float))
            }
            _ => None,
        }
    }

    fn number(&self) -> Option<f64> {
        let number = match &self.value {
            Input::Json(value) => value.as_f64(),
            Input::Text(text) => text.trim().parse().ok(),
            Input::Fields(_) => None,
        };
        number.filter(|number| number.is_finite())
    }

    fn text(&self) -> Option<String> {
        match &self.value {
            Input::Json(value) => value.as_str().map(str::to_owned),
            Input::Text(text) => Some(text.clone()),
            Input::Fields(_) => None,
        }
    }
}

impl IntoDeserializer<'_, Wrong> for Field {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

macro_rules! whole {
    ($($method:ident)+) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
            let wrong = self.wrong("a whole number, neither below 0 nor very large");
            let number = self.whole().ok_or_else(|| self.wrong("a whole number"))?;
            let visited: Result<_, Wrong> = match u64::try_from(number) {
                Ok(number) => visitor.visit_u64(number),
                Err(_) => visitor.visit_i64(number),
            };
            visited.map_err(|_| wrong)
        }
    )+};
}

impl<'de> Deserializer<'de> for Field {
    type Error = Wrong;

    whole!(deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_i8 deserialize_i16
        deserialize_i32 deserialize_i64);

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        let number = self.number().ok_or_else(|| self.wrong("a number"))?;
        visitor.visit_f64(number)
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        self.deserialize_f64(visitor)
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        match &self.value {
            Input::Json(Value::Bool(value)) => visitor.visit_bool(*value),
            Input::Text(text) if text == "true" => visitor.visit_bool(true),
            Input::Text(text) if text == "false" => visitor.visit_bool(false),
            _ => Err(self.wrong("true or false")),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        let text = self.text().ok_or_else(|| self.wrong("text"))?;
        visitor.visit_string(text)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        self.deserialize_string(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        match self.value {
            Input::Json(Value::Null) => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        let wrong = self.wrong("an object");
        let fields = match self.value {
            Input::Fields(fields) => fields,
            Input::Json(Value::Object(fields)) => {
                fields.into_iter().map(|(name, value)| (name, Input::Json(value))).collect()
            }
            _ => return Err(wrong),
        };
        visitor.visit_map(Fields { left: fields.into_iter(), value: None })
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        self.deserialize_map(visitor)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        let wrong = self.wrong("a list");
        let Input::Json(Value::Array(values)) = self.value else { return Err(wrong) };
        let name = self.name;
        let fields =
            values.into_iter().map(|value| Field { name: name.clone(), value: Input::Json(value) });
        visitor.visit_seq(SeqDeserializer::new(fields))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        let wanted = self.wrong(&format!("one of {}", variants.join(", ")));
        let text = self.text().filter(|text| variants.contains(&text.as_str())).ok_or(wanted)?;
        StringDeserializer::new(text).deserialize_enum(name, variants, visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        match self.value {
            Input::Json(value) => {
                value.deserialize_any(visitor).map_err(|error| Wrong(error.to_string()))
            }
            _ => self.deserialize_string(visitor),
        }
    }

    serde::forward_to_deserialize_any! {
        i128 u128 char bytes byte_buf unit unit_struct tuple tuple_struct identifier ignored_any
    }
}

impl<'de> MapAccess<'de> for Fields {
    type Error = Wrong;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Wrong> {
        let Some((name, value)) = self.left.next() else { return Ok(None) };
        self.value = Some(Field { name: Some(name.clone()), value });
        seed.deserialize(name.into_deserializer()).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Wrong> {
        let field = self.value.take().ok_or_else(|| Wrong("a field has no value".to_owned()))?;
        seed.deserialize(field)
    }
}

impl Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Wrong {}

impl de::Error for Wrong {
    fn custom<T: Display>(sentence: T) -> Self {
        Wrong(sentence.to_string())
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        let field = named(field);
        match expected {
            [] => Wrong(format!("`{field}` is no field here: leave it out, there are none")),
            _ => Wrong(format!("`{field}` is no field here: use {}", expected.join(", "))),
        }
    }

    fn missing_field(field: &'static str) -> Self {
        Wrong(format!("`{field}` is missing: add it"))
    }

    fn duplicate_field(field: &'static str) -> Self {
        Wrong(format!("`{field}` is there twice: leave one out"))
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Order {
        count: usize,
        #[serde(default)]
        name: Option<String>,
        rate: Option<f64>,
        list: Option<Vec<u32>>,
    }

    fn order(value: Value) -> Result<Order, String> {
        read(Input::Json(value)).map_err(|(_, sentence)| sentence)
    }

    #[test]
    fn a_whole_number_is_one_however_it_is_written() {
        for count in [json!(5112), json!(5112.0), json!(5.112e3)] {
            let read =
                order(json!({ "count": count, "rate": 1, "name": null, "list": [1.0] })).unwrap();
            let list = Some(vec![1]);
            assert_eq!(read, Order { count: 5112, name: None, rate: Some(1.0), list });
        }
        let text = |text: &str| {
            let fields = vec![("count".to_owned(), Input::Text(text.to_owned()))];
            read::<Order>(Input::Fields(fields)).map(|order| order.count)
        };
        assert_eq!((text("5112"), text("5112.0")), (Ok(5112), Ok(5112)));
        assert!(["", "a", "1.5", "-1", "1e300", "NaN"].iter().all(|bad| text(bad).is_err()));
    }

    #[test]
    fn what_is_wrong_is_said_without_types_of_the_program() {
        for (value, sentence) in [
            (json!([]), "the body must be an object: send one, as in {}"),
            (json!(1), "the body must be an object: send one, as in {}"),
            (json!({}), "`count` is missing: add it"),
            (json!({ "count": "a" }), "`count` must be a whole number: correct it"),
            (json!({ "count": 1.5 }), "`count` must be a whole number: correct it"),
            (
                json!({ "count": -1 }),
                "`count` must be a whole number, neither below 0 nor very large: correct it",
            ),
            (json!({ "count": 1, "name": 2 }), "`name` must be text: correct it"),
            (json!({ "count": 1, "rate": "x" }), "`rate` must be a number: correct it"),
            (json!({ "count": 1, "list": [1, "x"] }), "`list` must be a whole number: correct it"),
            (json!({ "count": 1, "x": 2 }), "`x` is no field here: use count, name, rate, list"),
        ] {
            assert_eq!(order(value).unwrap_err(), sentence);
        }
    }
}
