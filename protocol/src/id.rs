//! Request ids: an integer or a string, never null and never a fraction (LPP-FRAME-06).

use std::borrow::Cow;
use std::fmt;

use schemars::JsonSchema;
use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};

/// The id of a request, as its sender wrote it. An answer repeats it in the same JSON type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RequestId<'a> {
    /// An integer. The host's own ids are of this kind, counted up and never used twice.
    Number(i64),
    /// A string.
    Text(Cow<'a, str>),
}

impl RequestId<'_> {
    /// A copy that borrows nothing.
    pub fn into_owned(self) -> RequestId<'static> {
        match self {
            Self::Number(number) => RequestId::Number(number),
            Self::Text(text) => RequestId::Text(Cow::Owned(text.into_owned())),
        }
    }
}

impl fmt::Display for RequestId<'_> {
    /// Writes the id as JSON does, so that `1` and `"1"` look different.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => write!(f, "{text:?}"),
        }
    }
}

impl Serialize for RequestId<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Number(number) => serializer.serialize_i64(*number),
            Self::Text(text) => serializer.serialize_str(text),
        }
    }
}

impl<'de> Deserialize<'de> for RequestId<'_> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct IdVisitor;
        impl Visitor<'_> for IdVisitor {
            type Value = RequestId<'static>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an integer or a string")
            }
            fn visit_i64<E>(self, number: i64) -> Result<Self::Value, E> {
                Ok(RequestId::Number(number))
            }
            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Self::Value, E> {
                i64::try_from(number).map(RequestId::Number).map_err(|_| E::custom("an id has at most 64 signed bits"))
            }
            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(RequestId::Text(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_any(IdVisitor)
    }
}

impl JsonSchema for RequestId<'_> {
    fn schema_name() -> Cow<'static, str> {
        "RequestId".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "The id of a request: an integer of at most 64 signed bits, or a string.",
            "type": ["integer", "string"],
            "format": "int64"
        })
    }
}
