//! What a plugin does when it is called.

use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Plugin, linger, stdio};
use crate::args::Dialect;
use crate::deed::{Arguments, CRASH_STATUS, Deed, INBOUND, NOISE_LINES};
use crate::plan::HEALTHY;

/// Bytes of a message that is just within the host's own limit.
const NEARLY_ALL: usize = 15 * 1024 * 1024;

/// The ids of calls that are answered later, or never.
#[derive(Default, Clone)]
pub(super) struct Waiting(Arc<Mutex<BTreeSet<String>>>);

impl Waiting {
    fn locked(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Plugin {
    pub(super) fn call(&self, id: &str, params: Option<&RawValue>) {
        #[derive(Deserialize)]
        struct Params {
            arguments: Arguments,
        }
        let params = params.map(|params| serde_json::from_str::<Params>(params.get()));
        let Some(Ok(Params { arguments })) = params else {
            return self.stdout.add(error(id, "the arguments can't be read"));
        };
        if !matches!(arguments.deed, Deed::Answer | Deed::Large | Deed::Relay) {
            self.write_down(&arguments.token);
        }
        self.act(id, &arguments);
    }

    fn act(&self, id: &str, arguments: &Arguments) {
        let Arguments { token, deed, pad, .. } = arguments;
        let stdout = &self.stdout;
        match deed {
            Deed::Answer => {}
            Deed::Large => return stdout.add(answer(id, &format!("{token}:{pad}"), false)),
            Deed::Late | Deed::LateDeaf => return self.later(id, arguments),
            Deed::Never => {
                self.waiting.locked().insert(id.to_owned());
                return;
            }
            Deed::NeverDeaf => return,
            Deed::Fail => return stdout.add(answer(id, token, true)),
            Deed::Error => return stdout.add(error(id, token)),
            Deed::CrashBefore => self.exit(),
            Deed::CrashMid => {
                let line = answer(id, token, false);
                stdout.raw(&line.as_bytes()[..line.len() / 2]);
                self.exit();
            }
            Deed::CrashAfter => {
                stdout.add(answer(id, token, false));
                self.exit();
            }
            Deed::Killed => self.signal(Signal::SIGKILL),
            Deed::Garbage => {
                ["no message", "[]", r#"{"jsonrpc":"2.0"}"#, "\u{1b}[31m{"].iter().for_each(|line| stdout.add(line));
            }
            Deed::Flood => (0..NOISE_LINES * 3 / 2).for_each(|_| stdout.add("no message")),
            Deed::Twice => stdout.add(answer(id, token, false)),
            Deed::StrangeIds => {
                for strange in ["999999999", "-1", "\"x\"", "null", "1.5"] {
                    stdout.add(answer(strange, "nobody", false));
                }
            }
            Deed::CloseStdout => {
                stdout.flush();
                stdio::close(1);
                return;
            }
            Deed::CloseStdin => {
                stdout.flush();
                stdio::close(0);
                stdio::wait_for_ever();
            }
            Deed::ProgressStorm => self.progress(id),
            Deed::LogStorm => {
                let note =
                    r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"busy"}}"#;
                (0..1000).for_each(|_| stdout.add(note));
            }
            Deed::ListStorm => {
                let note = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
                (0..100).for_each(|_| stdout.add(note));
            }
            // A closed stderr is nothing to it.
            Deed::Stderr => drop(std::io::stderr().write_all(&[b'e'; 1024 * 1024])),
            Deed::Oversized => return stdout.add(answer(id, &"x".repeat(INBOUND + 1), false)),
            Deed::Child | Deed::ChildOwnSession => linger::leave(*deed == Deed::ChildOwnSession),
            Deed::Relay if self.dialect != Dialect::Mcp => return self.relay(id, token),
            Deed::Relay => {}
            Deed::StopReading => {
                stdout.flush();
                stdio::wait_for_ever();
            }
            Deed::ReadSlowly => {
                stdout.flush();
                stdio::read_slowly();
            }
            Deed::EndlessLine => {
                let mebibyte = [b'x'; 1024 * 1024];
                stdout.raw(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"text":""#).as_bytes());
                (0..1024).for_each(|_| stdout.raw(&mebibyte));
                stdio::wait_for_ever();
            }
            Deed::LargeNotes => {
                for _ in 0..64 {
                    let data = "x".repeat(NEARLY_ALL);
                    let params = format!(r#"{{"level":"info","data":"{data}"}}"#);
                    stdout.add(format!(r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{params}}}"#));
                    stdout.flush();
                }
            }
            Deed::LargeRequests => {
                for n in 0..64 {
                    let arguments = format!(r#"{{"token":"t","deed":"never","pad":"{}"}}"#, "x".repeat(NEARLY_ALL));
                    stdout.add(request(&n.to_string(), id, "tools/call", &call_of_healthy(&arguments)));
                    stdout.flush();
                }
                return;
            }
            Deed::Requests => {
                for n in 0..1_000_000 {
                    stdout.add(request(&n.to_string(), id, "tools/list", ""));
                    if n % 1000 == 0 {
                        stdout.flush();
                    }
                }
                stdout.flush();
                stdio::wait_for_ever();
            }
            Deed::StopItself => {
                self.signal(Signal::SIGSTOP);
                return;
            }
            Deed::OutliveEnd => {
                self.outlives.store(true, Ordering::Relaxed);
                // One that can't ignore signals is merely a better plugin.
                let _ = linger::ignore_ends(&self.outlives);
            }
        }
        stdout.add(answer(id, token, false));
        if *deed == Deed::Garbage {
            stdout.add("no message");
        }
    }

    fn exit(&self) -> ! {
        self.stdout.flush();
        std::process::exit(CRASH_STATUS)
    }

    fn signal(&self, signal: Signal) {
        self.stdout.flush();
        // A process may signal itself.
        let _ = kill(Pid::this(), signal);
    }

    fn later(&self, id: &str, Arguments { token, deed, after, .. }: &Arguments) {
        let (id, line, after) = (id.to_owned(), answer(id, token, false), Duration::from_millis(*after));
        let (stdout, waiting) = (self.stdout.clone(), self.waiting.clone());
        let is_deaf = *deed == Deed::LateDeaf;
        if !is_deaf {
            waiting.locked().insert(id.clone());
        }
        std::thread::spawn(move || {
            std::thread::sleep(after);
            if is_deaf || waiting.locked().remove(&id) {
                stdout.add(line);
                stdout.flush();
            }
        });
    }

    /// Ends a call that is not to be answered any more, and tells.
    pub(super) fn cancelled(&self, params: Option<&RawValue>) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Params<'a> {
            #[serde(borrow)]
            request_id: &'a RawValue,
        }
        let params = params.and_then(|params| serde_json::from_str::<Params<'_>>(params.get()).ok());
        let Some(Params { request_id }) = params else { return };
        if self.waiting.locked().remove(request_id.get()) && self.dialect != Dialect::Mcp {
            let params = format!(r#"{{"requestId":{request_id}}}"#);
            self.stdout.add(format!(r#"{{"jsonrpc":"2.0","method":"lemon/settled","params":{params}}}"#));
        }
    }

    fn progress(&self, id: &str) {
        for step in 0..1000 {
            let params = format!(r#"{{"progressToken":{id},"progress":{step}}}"#);
            self.stdout.add(format!(r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{params}}}"#));
        }
    }

    fn relay(&self, id: &str, token: &str) {
        let arguments = format!(r#"{{"token":"{token}","deed":"answer"}}"#);
        self.stdout.add(request(&format!("r{id}"), id, "tools/call", &call_of_healthy(&arguments)));
    }

    /// Passes on what the host answered to a request that was made for a call.
    pub(super) fn relayed(&self, id: &str, result: Option<&RawValue>) {
        let Some(id) = id.strip_prefix("\"r").and_then(|id| id.strip_suffix('"')) else { return };
        self.stdout.add(match result {
            Some(result) => format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#),
            None => answer(id, "the host answered with an error", true),
        });
    }

    fn write_down(&self, token: &str) {
        let Some(ledger) = &self.ledger else { return };
        let file = OpenOptions::new().append(true).create(true).open(ledger);
        // One write, so that lines of many processes do not mix.
        let _ = file.and_then(|mut file| file.write_all(format!("{token}\n").as_bytes()));
    }
}

/// A request to the host, on behalf of a call.
fn request(id: &str, call: &str, method: &str, params: &str) -> String {
    let meta = format!(r#""_meta":{{"dev.lemon/parent":{call}}}"#);
    format!(r#"{{"jsonrpc":"2.0","id":"{id}","method":"host/{method}","params":{{{params}{meta}}}}}"#)
}

/// What comes first in the params of a request that has the healthy plugin called.
fn call_of_healthy(arguments: &str) -> String {
    format!(r#""name":"{HEALTHY}","arguments":{arguments},"#)
}

fn answer(id: &str, text: &str, is_error: bool) -> String {
    let content = format!(r#"[{{"type":"text","text":"{text}"}}]"#);
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":{content},"isError":{is_error}}}}}"#)
}

fn error(id: &str, message: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32000,"message":"{message}"}}}}"#)
}
