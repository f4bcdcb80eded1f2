//! Typed requests of the host, by jsonrpsee's client traits over our own wire.
//!
//! Only what is not on the hot path goes this way: `tools/call` and hooks use [`Peer::call`] with bytes.

use std::fmt;
use std::time::Duration;

use jsonrpsee::core::client::{BatchResponse, ClientT, Error};
use jsonrpsee::core::params::BatchRequestBuilder;
use jsonrpsee::core::traits::ToRpcParams;
use jsonrpsee::proc_macros::rpc;
use lemon_protocol::{Capabilities, Implementation, InitializeResult, ListToolsResult, method};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::peer::{Outgoing, Peer};
use crate::error::CallError;

/// What the host asks of a plugin outside of calls and hooks.
#[rpc(client)]
pub(crate) trait PluginApi {
    #[method(name = "initialize", param_kind = map)]
    async fn initialize(
        &self,
        #[argument(rename = "protocolVersion")] protocol_version: &str,
        capabilities: &Capabilities,
        #[argument(rename = "clientInfo")] client_info: &Implementation,
    ) -> Result<InitializeResult, ErrorObjectOwned>;

    #[method(name = "ping", param_kind = map)]
    async fn ping(&self) -> Result<Value, ErrorObjectOwned>;

    #[method(name = "tools/list", param_kind = map)]
    async fn list_tools(&self, cursor: Option<&str>) -> Result<ListToolsResult, ErrorObjectOwned>;

    #[method(name = "lemon/configure", param_kind = map)]
    async fn configure(&self, values: &Map<String, Value>, generation: u64) -> Result<Value, ErrorObjectOwned>;

    #[method(name = "lemon/shutdown", param_kind = map)]
    async fn shutdown(&self, reason: &str) -> Result<Value, ErrorObjectOwned>;
}

/// How a typed request is made.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CallOptions {
    /// How long it may take; none means that something else limits it.
    pub(crate) deadline: Option<Duration>,
    /// It goes before all data and is never cancelled.
    pub(crate) control: bool,
}

/// A peer with the options of the requests that are made through it.
pub(crate) struct With<'a> {
    peer: &'a Peer,
    options: CallOptions,
}

impl Peer {
    /// A client for typed requests.
    pub(crate) fn with(&self, options: CallOptions) -> With<'_> {
        With { peer: self, options }
    }
}

/// jsonrpsee wants `&'static str` nowhere, our reports do: the methods of [`PluginApi`] are known.
fn known(method: &str) -> &'static str {
    [method::INITIALIZE, method::PING, method::TOOLS_LIST, method::CONFIGURE, method::SHUTDOWN]
        .into_iter()
        .find(|known| *known == method)
        .unwrap_or("a request")
}

impl ClientT for With<'_> {
    async fn notification<Params: ToRpcParams + Send>(&self, method: &str, params: Params) -> Result<(), Error> {
        self.peer.notify_now(method, &params.to_rpc_params()?, self.options.control);
        Ok(())
    }

    async fn request<R: DeserializeOwned, Params: ToRpcParams + Send>(
        &self,
        method: &str,
        params: Params,
    ) -> Result<R, Error> {
        let method = known(method);
        let params = without_nulls(params.to_rpc_params()?);
        let outgoing = Outgoing { total: self.options.deadline, control: self.options.control, ..Outgoing::default() };
        let result = self
            .peer
            .call(method, |_, bytes| bytes.extend_from_slice(&params), outgoing)
            .await
            .map_err(|error| Error::Transport(error.into()))?;
        Ok(serde_json::from_str(result.get())?)
    }

    async fn batch_request<'a, R: DeserializeOwned + fmt::Debug + 'a>(
        &self,
        _: BatchRequestBuilder<'a>,
    ) -> Result<BatchResponse<'a, R>, Error> {
        Err(Error::Custom("batches are not part of the protocol".to_owned()))
    }
}

/// An optional parameter that is not given is left out: servers take `"cursor": null` for a cursor.
fn without_nulls(params: Option<Box<RawValue>>) -> Vec<u8> {
    let text = params.map_or_else(|| "{}".to_owned(), |params| params.get().to_owned());
    match serde_json::from_str::<Map<String, Value>>(&text) {
        Ok(mut members) if members.values().any(Value::is_null) => {
            members.retain(|_, value| !value.is_null());
            serde_json::to_vec(&members).unwrap_or_else(|_| text.into_bytes())
        }
        _ => text.into_bytes(),
    }
}

/// The error of a typed request, as the wire gave it.
pub(crate) fn call_error(error: Error) -> Result<CallError, String> {
    match error {
        Error::Transport(inner) => match inner.downcast::<CallError>() {
            Ok(error) => Ok(*error),
            Err(other) => Err(other.to_string()),
        },
        Error::ParseError(fault) => Err(fault.to_string()),
        other => Err(other.to_string()),
    }
}
