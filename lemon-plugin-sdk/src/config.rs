//! The plugin's configuration: declared as a type, checked by the plugin, handed to handlers (LPP-CONF).

use std::any::{Any, TypeId, type_name};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_path_to_error::{Path, Segment};

use crate::error::ConfigError;
use crate::read::Misfit;
use crate::schema;

type Values = Arc<dyn Any + Send + Sync>;
type Accepting = Pin<Box<dyn Future<Output = Result<(), ConfigError>> + Send>>;

/// The declaration.
pub(crate) struct Declared {
    of: TypeId,
    pub(crate) schema: Result<Value, String>,
    read: fn(&str) -> Result<Values, ConfigError>,
    accept: Vec<Box<dyn Fn(Values) -> Accepting + Send + Sync>>,
}

impl Declared {
    pub(crate) fn new<T: DeserializeOwned + JsonSchema + Send + Sync + 'static>() -> Self {
        Self {
            of: TypeId::of::<T>(),
            schema: schema::object(schema::of_input::<T>()),
            read: |text| Ok(Arc::new(read::<T>(text)?)),
            accept: Vec::new(),
        }
    }

    pub(crate) fn is_of<T: 'static>(&self) -> bool {
        self.of == TypeId::of::<T>()
    }

    /// Adds what has to accept values of the type before they are in force.
    pub(crate) fn accept<T, Fut, F>(&mut self, handler: F)
    where
        T: Send + Sync + 'static,
        Fut: Future<Output = Result<(), ConfigError>> + Send + 'static,
        F: Fn(Arc<T>) -> Fut + Send + Sync + 'static,
    {
        self.accept.push(Box::new(move |values| match values.downcast::<T>() {
            Ok(values) => Box::pin(handler(values)),
            // The builder compares the types.
            Err(_) => Box::pin(std::future::ready(Ok(()))),
        }));
    }
}

/// The values that are in force.
#[derive(Default)]
pub(crate) struct Config {
    current: Mutex<Option<Values>>,
    /// One configuration after the other: the generation in force.
    generation: tokio::sync::Mutex<u64>,
}

impl Config {
    /// Puts values in force, if the type and the plugin accept them and no newer ones are; else those before stay.
    pub(crate) async fn configure(
        &self,
        declared: &Declared,
        generation: u64,
        values: &str,
    ) -> Result<(), ConfigError> {
        let mut in_force = self.generation.lock().await;
        if generation < *in_force {
            let newer = *in_force;
            return Err(ConfigError::whole(format!("generation {newer} is in force, and {generation} is older")));
        }
        let values = (declared.read)(values)?;
        for accept in &declared.accept {
            accept(values.clone()).await?;
        }
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = Some(values);
        *in_force = generation;
        Ok(())
    }

    /// The values in force; where none were sent, the defaults of the type.
    pub(crate) fn get<T: Send + Sync + 'static>(&self, declared: Option<&Declared>) -> Result<Arc<T>, ConfigError> {
        let another =
            || ConfigError::whole(format!("the plugin did not declare {} as its configuration", type_name::<T>()));
        let declared = declared.filter(|declared| declared.is_of::<T>()).ok_or_else(another)?;
        let current = self.current.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let values = match current {
            Some(values) => values,
            None => (declared.read)("{}").map_err(|error| {
                ConfigError::at(error.pointer(), format!("the client sent no configuration: {}", error.message()))
            })?,
        };
        values.downcast().map_err(|_| another())
    }
}

fn read<T: DeserializeOwned>(text: &str) -> Result<T, ConfigError> {
    crate::read::read(text).map_err(|Misfit { path, reason }| ConfigError::at(pointer(&path), reason))
}

/// A path as a JSON Pointer (RFC 6901).
fn pointer(path: &Path) -> String {
    let mut pointer = String::new();
    for segment in path {
        let name = match segment {
            Segment::Seq { index } => index.to_string(),
            Segment::Map { key } => key.replace('~', "~0").replace('/', "~1"),
            // An enum's variant is a member only in one of serde's representations, and an unknown part names nothing.
            Segment::Enum { .. } | Segment::Unknown => continue,
        };
        pointer.push('/');
        pointer.push_str(&name);
    }
    pointer
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[tokio::test]
    async fn an_older_configuration_does_not_take_the_place_of_a_newer_one() {
        type Retries = BTreeMap<String, u8>;
        let (declared, config) = (Declared::new::<Retries>(), Config::default());
        config.configure(&declared, 2, r#"{"retries": 2.0}"#).await.unwrap();
        assert!(config.configure(&declared, 1, r#"{"retries": 1}"#).await.is_err(), "its task came late");
        assert_eq!(config.get::<Retries>(Some(&declared)).unwrap()["retries"], 2);
    }

    #[test]
    fn the_place_of_a_fault_is_a_json_pointer() {
        let error = read::<BTreeMap<String, Vec<u8>>>(r#"{"a/b~": [1, 300]}"#).unwrap_err();
        assert_eq!(error.pointer(), "/a~1b~0/1");
        assert_eq!(error.message(), "invalid value: integer, expected u8");
    }
}
