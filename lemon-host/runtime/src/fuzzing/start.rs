//! A plugin from its spawn to its first list of tools, with any bytes on its stdout.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use lemon_protocol::{ErrorObject, Implementation};
use serde_json::json;
use serde_json::value::RawValue;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::time::Instant;

use super::{are_callable, block_on, is_tellable, limits};
use crate::error::CallError;
use crate::limits::Timeouts;
use crate::plugin::handshake::Handshake;
use crate::plugin::{Class, Generation, PluginName, PluginSpec};
use crate::report::{PluginText, Redactor};
use crate::seams::Secrets;
use crate::wire::{Inbound, InboundRequest, Peer, PeerEvent, PeerOptions};

/// The one secret that there is. A plugin that has it may write it at any time.
const SECRET: &str = "s3cr3t-value";

/// Bytes are what a plugin writes to its stdout, whatever it is asked.
pub fn start(bytes: &[u8]) {
    block_on(async {
        let Ok(plugin) = "plugin".parse::<PluginName>() else { return };
        let (limits, redactor) = (limits(), Redactor::new());
        redactor.add(SECRET);
        let options = PeerOptions {
            plugin: plugin.clone(),
            generation: Generation::default(),
            limits: Arc::new(limits.clone()),
            timeouts: Arc::new(Timeouts::default()),
            inbound: Arc::new(Deaf),
            tracer: None,
            redactor: redactor.clone(),
            control: None,
        };
        let mut spec = PluginSpec::new(plugin.clone(), Class::Extension, ["plugin"]);
        spec.config =
            [("key".to_owned(), json!({ "secret": "KEY" })), ("n".to_owned(), json!(3))].into_iter().collect();
        let client = Implementation { name: "fuzz".to_owned(), version: "1".to_owned(), title: None };
        let allowed = Duration::from_secs(60);
        let handshake = Handshake {
            spec: &spec,
            limits: &limits,
            client: &client,
            secrets: &OneSecret,
            redactor: &redactor,
            deadline: Instant::now() + allowed,
            allowed,
        };
        let peer = Peer::start(options, tokio::io::sink(), Stdout::of(bytes));
        let end = async {
            while peer.event().await != PeerEvent::StdoutClosed {}
            peer.close(CallError::ShuttingDown { plugin: plugin.clone() });
        };
        let (outcome, ()) = futures_util::future::join(handshake.run(&peer, PluginText::default), end).await;
        match outcome {
            Ok(offer) => {
                assert!(offer.tools.tools.len() <= limits.tools);
                are_callable(&offer.tools);
            }
            Err(error) => is_free_of_secrets(&error.to_string()),
        }
        peer.noise().first.values().for_each(|first| is_free_of_secrets(&first.block().to_string()));
    });
}

fn is_free_of_secrets(text: &str) {
    is_tellable(text);
    assert!(!text.contains(SECRET), "a secret is told: {text:?}");
}

struct OneSecret;

impl Secrets for OneSecret {
    fn get(&self, _: &str) -> Option<String> {
        Some(SECRET.to_owned())
    }
}

/// Has no answer to any request.
struct Deaf;

impl Inbound for Deaf {
    fn request(
        self: Arc<Self>,
        request: InboundRequest,
    ) -> Pin<Box<dyn Future<Output = Result<Box<RawValue>, ErrorObject>> + Send>> {
        let error = ErrorObject { code: ErrorObject::METHOD_NOT_FOUND, message: request.method, data: None };
        Box::pin(std::future::ready(Err(error)))
    }

    fn notification(&self, _: &Peer, _: &str, _: &str) {}

    fn noise(&self, _: &Peer, _: &'static str, first: &PluginText) {
        is_free_of_secrets(&first.line().to_string());
    }
}

/// A stdout that gives a line at a time, so that the host asks its next question before it reads the answer.
struct Stdout {
    lines: VecDeque<Vec<u8>>,
    turns: u8,
}

impl Stdout {
    /// Turns that the host's other tasks get before each line.
    const TURNS: u8 = 8;

    fn of(bytes: &[u8]) -> Self {
        Self { lines: bytes.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect(), turns: 0 }
    }
}

impl AsyncRead for Stdout {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.turns < Self::TURNS {
            self.turns += 1;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.turns = 0;
        if let Some(mut line) = self.lines.pop_front() {
            let rest = line.split_off(line.len().min(buffer.remaining()));
            buffer.put_slice(&line);
            if !rest.is_empty() {
                self.lines.push_front(rest);
            }
        }
        Poll::Ready(Ok(()))
    }
}
