//! The least that a JSON-RPC host on tokio does: ids are counted, all that waits goes out in one write, the envelope is
//! parsed, the call found by its id. No schema, no hooks, no time limits, no bounds.

use std::collections::HashMap;
use std::process::Child;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use memchr::memchr;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::runtime::Runtime;
use tokio::sync::{Notify, oneshot};

use super::{Contestant, runtime, start_server};
use crate::payload::Payload;

pub(crate) struct Floor {
    runtime: Runtime,
    client: Arc<Client>,
    _child: Child,
}

impl Floor {
    pub(crate) fn start(cpu: usize) -> Result<Self> {
        let runtime = runtime()?;
        let mut child = start_server(&["serve-calls", &cpu.to_string()])?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            bail!("there are no pipes")
        };
        let client = Arc::new(Client::default());
        let entered = runtime.enter();
        let (stdin, stdout) = (Sender::from_owned_fd(stdin.into())?, Receiver::from_owned_fd(stdout.into())?);
        let (writer, reader) = (client.clone(), client.clone());
        tokio::spawn(async move { writer.write(stdin).await });
        tokio::spawn(async move { reader.read(stdout).await });
        drop(entered);
        Ok(Self { runtime, client, _child: child })
    }
}

impl Contestant for Floor {
    fn one_by_one(&mut self, payload: &Payload, times: &mut [Duration]) -> Result<()> {
        let expected = payload.result_len();
        self.runtime.block_on(async {
            for time in times {
                let start = Instant::now();
                let result = self.client.call(payload).await?;
                *time = start.elapsed();
                ensure!(result.get().len() == expected, "a wrong answer: {result}");
            }
            Ok(())
        })
    }

    fn side_by_side(&mut self, payload: &Payload, calls: usize, width: usize) -> Result<Duration> {
        let payload = Arc::new(payload.clone());
        self.runtime.block_on(async {
            let start = Instant::now();
            let callers = (0..width).map(|n| {
                let (client, payload) = (self.client.clone(), payload.clone());
                tokio::spawn(async move {
                    for _ in (n..calls).step_by(width) {
                        client.call(&payload).await?;
                    }
                    anyhow::Ok(())
                })
            });
            for caller in futures_util::future::join_all(callers).await {
                caller??;
            }
            Ok(start.elapsed())
        })
    }
}

#[derive(Default)]
struct Client {
    state: Mutex<State>,
    filled: Notify,
}

#[derive(Default)]
struct State {
    last_id: u64,
    open: HashMap<u64, oneshot::Sender<Box<RawValue>>>,
    outgoing: Vec<u8>,
}

#[derive(Deserialize)]
struct Answer<'a> {
    id: u64,
    #[serde(borrow)]
    result: &'a RawValue,
}

impl Client {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn call(&self, payload: &Payload) -> Result<Box<RawValue>> {
        let (sender, receiver) = oneshot::channel();
        {
            let mut state = self.state();
            state.last_id += 1;
            let id = state.last_id;
            state.open.insert(id, sender);
            payload.request(id, &mut state.outgoing);
        }
        self.filled.notify_one();
        receiver.await.context("the other side is gone")
    }

    async fn write(&self, mut stdin: Sender) -> Result<()> {
        let mut batch = Vec::new();
        loop {
            std::mem::swap(&mut batch, &mut self.state().outgoing);
            if batch.is_empty() {
                self.filled.notified().await;
                continue;
            }
            stdin.write_all(&batch).await?;
            batch.clear();
        }
    }

    async fn read(&self, mut stdout: Receiver) -> Result<()> {
        let mut buffer = Vec::with_capacity(64 * 1024);
        let mut seen = 0;
        while stdout.read_buf(&mut buffer).await? > 0 {
            let mut start = 0;
            while let Some(length) = memchr(b'\n', &buffer[seen..]) {
                let end = seen + length;
                self.settle(&buffer[start..end])?;
                start = end + 1;
                seen = start;
            }
            buffer.drain(..start);
            seen = buffer.len();
        }
        Ok(())
    }

    fn settle(&self, line: &[u8]) -> Result<()> {
        let answer: Answer<'_> = serde_json::from_slice(line)?;
        let open = self.state().open.remove(&answer.id);
        // A caller that is gone is none of the reader's business.
        let _ = open.context("an answer that nobody waits for")?.send(answer.result.to_owned());
        Ok(())
    }
}
