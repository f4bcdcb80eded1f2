use lemon_plugin_sdk::{ConfigError, Context, JsonSchema, NoArgs, Plugin, ServeError, ToolError};

#[derive(serde::Deserialize, JsonSchema)]
struct Config {
    /// The key of the service.
    #[schemars(extend("secret" = true))]
    api_key: String,
    /// How often to try.
    #[serde(default = "three")]
    retries: u32,
}

fn three() -> u32 {
    3
}

fn check(config: &Config) -> Result<(), ConfigError> {
    if config.api_key.is_empty() {
        return Err(ConfigError::at("/api_key", "it is empty; make one in the service's settings"));
    }
    Ok(())
}

async fn retries(_: NoArgs, ctx: Context) -> Result<String, ToolError> {
    let config = ctx.config::<Config>()?;
    Ok(format!("{} times", config.retries))
}

fn plugin() -> Plugin {
    Plugin::new("service", "1.0.0").check_config(check).tool("retries", "Says how often it tries.", retries)
}

fn main() -> Result<(), ServeError> {
    plugin().run()
}

#[cfg(test)]
mod tests {
    use lemon_plugin_sdk::Kind;
    use lemon_plugin_sdk::testing::{Client, Error};
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn it_tries_as_often_as_it_is_told_to() -> Result<(), Error> {
        let client = Client::builder().config(json!({"api_key": "k"})).connect(plugin()).await?;
        assert_eq!(client.call("retries", json!({})).await?.text(), "3 times");
        client.configure(json!({"api_key": "k", "retries": 5})).await?;
        assert_eq!(client.call("retries", json!({})).await?.text(), "5 times");
        Ok(())
    }

    #[tokio::test]
    async fn it_wants_a_key() {
        let refused = Client::builder().config(json!({"api_key": ""})).connect(plugin()).await;
        assert_eq!(refused.unwrap_err().kind(), Some(Kind::Config));
    }
}
