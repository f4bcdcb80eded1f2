use lemon_plugin_sdk::{JsonSchema, Plugin, ServeError};

#[derive(serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Greet {
    /// Whom to greet.
    name: String,
}

fn plugin() -> Plugin {
    Plugin::new("hello", env!("CARGO_PKG_VERSION"))
        .tool("greet", "Greets someone.", async |args: Greet, _ctx| format!("Hello, {}!", args.name))
}

fn main() -> Result<(), ServeError> {
    plugin().run()
}

#[cfg(test)]
mod tests {
    use lemon_plugin_sdk::testing::Error;
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn it_greets() -> Result<(), Error> {
        let client = plugin().test_client().await?;
        let result = client.call("greet", json!({"name": "Ann"})).await?;
        assert_eq!(result.text(), "Hello, Ann!");
        Ok(())
    }

    #[tokio::test]
    async fn it_knows_no_other_argument() -> Result<(), Error> {
        let client = plugin().test_client().await?;
        let result = client.call("greet", json!({"name": "Ann", "nmae": "Ben"})).await?;
        assert!(result.is_error() && result.text().contains("nmae"));
        Ok(())
    }
}
