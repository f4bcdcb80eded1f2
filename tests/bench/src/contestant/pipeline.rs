//! A tool call as an embedding program makes it, on the runtime that the command line has.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use lemon_host::{Class, Host, PluginSpec, Session, SessionOptions};
use tokio::runtime::Runtime;

use super::{Contestant, own_program, runtime};
use crate::payload::{Payload, TOOL};

pub(crate) struct Pipeline {
    runtime: Runtime,
    host: Host,
    session: Session,
}

impl Pipeline {
    pub(crate) fn start(cpu: usize) -> Result<Self> {
        let runtime = runtime()?;
        let command = [own_program()?, "serve-calls".to_owned(), cpu.to_string()];
        let plugin = PluginSpec::new("bench".parse()?, Class::Extension, command);
        let (host, session) = runtime.block_on(async {
            let host = Host::builder().plugin(plugin).start();
            host.settled().await;
            let session = host.session(SessionOptions::default());
            (host, session)
        });
        // Says why, if it is not there.
        host.tool(TOOL)?;
        Ok(Self { runtime, host, session })
    }
}

impl Contestant for Pipeline {
    fn one_by_one(&mut self, payload: &Payload, times: &mut [Duration]) -> Result<()> {
        let expected = payload.result_len();
        self.runtime.block_on(async {
            for time in times {
                let start = Instant::now();
                let result = self.session.call(TOOL, payload.arguments.as_str()).await?;
                *time = start.elapsed();
                ensure!(!result.is_error() && result.raw().get().len() == expected, "a wrong answer: {}", result.raw());
            }
            Ok(())
        })
    }

    fn side_by_side(&mut self, payload: &Payload, calls: usize, width: usize) -> Result<Duration> {
        self.runtime.block_on(async {
            let start = Instant::now();
            let callers = (0..width).map(|n| {
                let (session, arguments) = (self.session.clone(), payload.arguments.clone());
                tokio::spawn(async move {
                    for _ in (n..calls).step_by(width) {
                        session.call(TOOL, arguments.as_str()).await?;
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

impl Drop for Pipeline {
    fn drop(&mut self) {
        self.runtime.block_on(self.host.shutdown());
    }
}
