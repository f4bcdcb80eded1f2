//! A peer over a pipe in memory, with the test as the other side.

use std::sync::Arc;
use std::time::Duration;

use lemon_protocol::{ErrorObject, Kind};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::report::PluginText;
use crate::wire::inbound::InboundRequest;

/// Answers every request with its own params, after the time that they name.
struct Echo;

impl Inbound for Echo {
    fn request(
        self: Arc<Self>,
        request: InboundRequest,
    ) -> std::pin::Pin<Box<dyn Future<Output = Result<Box<RawValue>, ErrorObject>> + Send>> {
        Box::pin(async move {
            if request.method == "slow" {
                std::future::pending::<()>().await;
            }
            request.params.ok_or_else(|| ErrorObject::of(Kind::Denied, "no params"))
        })
    }

    fn notification(&self, peer: &Peer, method: &str, _: &str) {
        peer.note("unknown_notification", || method.to_owned());
    }

    fn noise(&self, _: &Peer, _: &'static str, _: &PluginText) {}
}

struct Other {
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    writer: WriteHalf<DuplexStream>,
}

impl Other {
    async fn read(&mut self) -> Value {
        serde_json::from_str(&self.lines.next_line().await.unwrap().unwrap()).unwrap()
    }

    async fn write(&mut self, text: &str) {
        self.writer.write_all(text.as_bytes()).await.unwrap();
        self.writer.write_all(b"\n").await.unwrap();
    }
}

/// A peer and its other side, joined by pipes of `pipe` bytes, past the handshake.
fn pair(pipe: usize) -> (Peer, Other) {
    pair_with(pipe, Limits::default())
}

fn pair_with(pipe: usize, limits: Limits) -> (Peer, Other) {
    let (ours, theirs) = tokio::io::duplex(pipe);
    let (reader, writer) = tokio::io::split(ours);
    let peer = Peer::start(options(limits), writer, reader);
    peer.open(true);
    let (reader, writer) = tokio::io::split(theirs);
    (peer, Other { lines: BufReader::new(reader).lines(), writer })
}

fn options(limits: Limits) -> PeerOptions {
    PeerOptions {
        plugin: "other".parse().unwrap(),
        generation: Generation::default(),
        limits: Arc::new(limits),
        timeouts: Arc::new(Timeouts::default()),
        inbound: Arc::new(Echo),
        tracer: None,
        redactor: Redactor::new(),
        control: None,
    }
}

fn call(peer: &Peer, params: impl Into<String>, outgoing: Outgoing) -> tokio::task::JoinHandle<Outcome> {
    let (peer, params) = (peer.clone(), params.into());
    tokio::spawn(async move {
        peer.call("tools/call", |_, bytes| bytes.extend_from_slice(params.as_bytes()), outgoing).await
    })
}

#[tokio::test]
async fn answers_in_any_order_reach_their_callers() {
    let (peer, mut other) = pair(64 * 1024);
    let calls: Vec<_> = (0..10).map(|n| call(&peer, n.to_string(), Outgoing::default())).collect();
    let mut requests = Vec::new();
    for _ in 0..10 {
        requests.push(other.read().await);
    }
    for request in requests.iter().rev() {
        other.write(&json!({"jsonrpc": "2.0", "id": request["id"], "result": request["params"]}).to_string()).await;
    }
    for (n, call) in calls.into_iter().enumerate() {
        assert_eq!(call.await.unwrap().unwrap().get(), n.to_string());
    }
}

#[tokio::test]
async fn a_call_that_is_cancelled_before_it_is_written_is_never_heard_of() {
    // The pipe is full with the first call, so the second one waits in the outbox.
    let (peer, mut other) = pair(64);
    let big = format!("\"{}\"", "x".repeat(10_000));
    let first = call(&peer, big, Outgoing::default());
    while peer.outbox_bytes() == 0 {
        tokio::task::yield_now().await;
    }
    let cancel = CancellationToken::new();
    let second = call(&peer, "2", Outgoing { cancel: Some(cancel.clone()), ..Outgoing::default() });
    while peer.load().0 < 2 {
        tokio::task::yield_now().await;
    }
    cancel.cancel();
    assert!(matches!(second.await.unwrap(), Err(CallError::Cancelled { .. })));
    assert_eq!(peer.load().1, 0, "it holds no slot either");
    assert_eq!(other.read().await["id"], 1);
    let third = call(&peer, "3", Outgoing::default());
    assert_eq!(other.read().await["id"], 3);
    drop((first, third));
}

#[tokio::test]
async fn a_cancellation_overtakes_what_waits_and_the_late_answer_is_only_counted() {
    let (peer, mut other) = pair(64 * 1024);
    let cancel = CancellationToken::new();
    let first = call(&peer, "1", Outgoing { cancel: Some(cancel.clone()), ..Outgoing::default() });
    assert_eq!(other.read().await["id"], 1);
    cancel.cancel();
    assert!(matches!(first.await.unwrap(), Err(CallError::Cancelled { .. })));
    let cancelled = other.read().await;
    assert_eq!(cancelled["method"], "notifications/cancelled");
    assert_eq!(cancelled["params"], json!({"requestId": 1, "reason": "cancelled"}));
    assert_eq!(peer.load(), (0, 1));
    other.write(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#).await;
    let second = call(&peer, "2", Outgoing::default());
    other.read().await;
    other.write(r#"{"jsonrpc":"2.0","id":2,"result":{}}"#).await;
    second.await.unwrap().unwrap();
    assert_eq!(peer.noise().counts["late_answer"], 1);
    assert_eq!(peer.load(), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn that_answers_come_is_told_at_once_and_then_once_a_second() {
    let (peer, mut other) = pair(64 * 1024);
    let mut told = 0;
    for _ in 0..40 {
        let call = call(&peer, "1", Outgoing::default());
        let id = other.read().await["id"].clone();
        other.write(&json!({"jsonrpc": "2.0", "id": id, "result": {}}).to_string()).await;
        call.await.unwrap().unwrap();
        while tokio::time::timeout(Duration::ZERO, peer.event()).await == Ok(PeerEvent::GoodReply) {
            told += 1;
        }
        assert!(told > 0, "the first answer is told of");
        tokio::time::advance(Duration::from_millis(100)).await;
    }
    assert_eq!(told, 4);
}

#[tokio::test(start_paused = true)]
async fn a_deadline_is_a_cancellation_with_its_reason() {
    let (peer, mut other) = pair(64 * 1024);
    let call = call(&peer, "1", Outgoing { total: Some(Duration::from_secs(3)), ..Outgoing::default() });
    other.read().await;
    assert!(matches!(call.await.unwrap(), Err(CallError::Timeout { idle: false, .. })));
    assert_eq!(other.read().await["params"]["reason"], "timeout");
}

#[tokio::test]
async fn two_hundred_large_messages_both_ways_at_once_do_not_block_each_other() {
    let (peer, mut other) = pair(64 * 1024);
    let big = format!("\"{}\"", "x".repeat(64 * 1024));
    let calls: Vec<_> = (0..200).map(|_| call(&peer, big.clone(), Outgoing::default())).collect();
    // The other side writes all that it has to say before it reads anything.
    let mut requests = String::new();
    for n in 0..200 {
        requests.push_str(&format!("{{\"jsonrpc\":\"2.0\",\"id\":\"r{n}\",\"method\":\"m\",\"params\":[{big}]}}\n"));
    }
    let mut writer = other.writer;
    let writing = tokio::spawn(async move {
        writer.write_all(requests.as_bytes()).await.unwrap();
        writer
    });
    let (mut answered, mut ids) = (0, Vec::new());
    while answered < 64 || ids.len() < 200 {
        let message: Value = serde_json::from_str(&other.lines.next_line().await.unwrap().unwrap()).unwrap();
        match message.get("method") {
            Some(_) => ids.push(message["id"].clone()),
            // At most 64 are worked on at once, the others are refused: every one is answered.
            None => answered += 1,
        }
    }
    let mut writer = writing.await.unwrap();
    for id in ids {
        let answer = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{big}}}\n");
        writer.write_all(answer.as_bytes()).await.unwrap();
    }
    for call in calls {
        assert_eq!(call.await.unwrap().unwrap().get().len(), big.len());
    }
}

#[tokio::test]
async fn requests_of_the_other_side_are_answered_and_refused_in_their_own_ids() {
    let (peer, mut other) = pair(64 * 1024);
    other.write(r#"{"jsonrpc":"2.0","id":"é","method":"m","params":{"a":1.10}}"#).await;
    assert_eq!(other.lines.next_line().await.unwrap().unwrap(), r#"{"jsonrpc":"2.0","id":"é","result":{"a":1.10}}"#);
    other.write(r#"{"jsonrpc":"2.0","id":-7,"method":"ping"}"#).await;
    assert_eq!(other.read().await, json!({"jsonrpc": "2.0", "id": -7, "result": {}}));
    for n in 0..65 {
        other.write(&format!(r#"{{"jsonrpc":"2.0","id":{n},"method":"slow"}}"#)).await;
    }
    let refused = other.read().await;
    assert_eq!((&refused["id"], &refused["error"]["data"]["kind"]), (&json!(64), &json!("busy")));
    other.write(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}"#).await;
    other.write(r#"{"jsonrpc":"2.0","id":3,"method":"m","params":{}}"#).await;
    assert_eq!(other.read().await["id"], 3, "a cancelled request is not answered, and frees its place");
    peer.closing();
    other.write(r#"{"jsonrpc":"2.0","id":99,"method":"m","params":{}}"#).await;
    assert_eq!(other.read().await["error"]["data"]["kind"], "shutting_down");
}

#[tokio::test]
async fn what_is_too_large_is_refused_before_it_is_written() {
    let (peer, _other) = pair(64 * 1024);
    peer.open(false);
    let limit = Limits::default().foreign_outbound_message_bytes;
    let params = format!("\"{}\"", "x".repeat(limit));
    let error = call(&peer, params, Outgoing::default()).await.unwrap().unwrap_err();
    assert!(matches!(error, CallError::TooLarge { .. }), "{error}");
    assert_eq!((peer.outbox_bytes(), peer.load()), (0, (0, 0)));
}

#[tokio::test]
async fn a_side_that_does_not_read_is_noticed_at_the_hard_bound() {
    let (peer, _other) = pair(64);
    let big = format!("\"{}\"", "x".repeat(1024 * 1024));
    for _ in 0..80 {
        // Notifications wait for no room.
        peer.notify_now("m", &serde_json::from_str::<&RawValue>(&big).unwrap(), false);
    }
    assert_eq!(peer.event().await, PeerEvent::NotReading);
    assert!(peer.outbox_bytes() <= Limits::default().outbox_hard_bytes);
}

#[tokio::test]
async fn the_end_settles_every_call_with_its_reason() {
    let (peer, mut other) = pair(64 * 1024);
    let call = call(&peer, "1", Outgoing::default());
    other.read().await;
    peer.close(CallError::Denied { reason: "the end".into() });
    assert_eq!(call.await.unwrap().unwrap_err().to_string(), "the call was refused: the end");
    assert_eq!(other.lines.next_line().await.unwrap(), None, "stdin is closed");
}

#[tokio::test]
async fn a_side_that_closed_its_input_is_noticed_at_once() {
    let (writer, theirs) = tokio::net::unix::pipe::pipe().unwrap();
    let (reader, _stdout) = tokio::io::duplex(64);
    let peer = Peer::start(options(Limits::default()), writer, reader);
    peer.open(true);
    drop(theirs);
    // Without a word.
    while peer.event().await != PeerEvent::StdinClosed {}
    peer.close(CallError::Denied { reason: "the end".into() });
}

#[tokio::test]
async fn a_side_that_closed_its_input_is_noticed_with_the_next_message() {
    let (peer, other) = pair(64 * 1024);
    drop(other);
    let call = call(&peer, "1", Outgoing::default());
    while peer.event().await != PeerEvent::StdinClosed {}
    peer.close(CallError::Denied { reason: "the end".into() });
    call.await.unwrap().unwrap_err();
}

#[tokio::test]
async fn a_bad_or_large_request_is_answered_and_ends_no_call_of_the_same_id() {
    let (peer, mut other) = pair(64 * 1024);
    let call = call(&peer, "1", Outgoing::default());
    other.read().await;
    other.write(r#"{"jsonrpc":"1.0","id":1,"method":"m","params":{}}"#).await;
    assert_eq!(other.read().await["error"]["code"], -32600);
    let limit = Limits::default().inbound_message_bytes;
    let large = format!(r#"{{"jsonrpc":"2.0","method":"m","params":["{}"],"id":1}}"#, "x".repeat(limit));
    other.write(&large).await;
    let refused = other.read().await;
    assert_eq!((&refused["id"], &refused["error"]["data"]["kind"]), (&json!(1), &json!("too_large")));
    other.write(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#).await;
    call.await.unwrap().unwrap();
}

#[tokio::test]
async fn requests_of_a_side_that_does_not_read_are_refused_when_their_answers_wait() {
    let limits = Limits { inbound_requests: 4, outbox_soft_bytes: 1000, ..Limits::default() };
    let (peer, mut other) = pair_with(64 * 1024, limits);
    let big = "x".repeat(100_000);
    for n in 0..100 {
        other.write(&format!(r#"{{"jsonrpc":"2.0","id":{n},"method":"m","params":["{big}"]}}"#)).await;
    }
    // What waits is bounded by the slots, whatever was asked; the other answers are short refusals.
    assert!(peer.outbox_bytes() < 8 * 100_000, "{}", peer.outbox_bytes());
    let mut busy = 0;
    for _ in 0..100 {
        busy += usize::from(other.read().await["error"]["data"]["kind"] == "busy");
    }
    assert!(busy > 80, "{busy}");
}

#[tokio::test]
async fn a_process_that_is_being_replaced_takes_no_new_calls_and_finishes_the_others() {
    let (peer, mut other) = pair(64 * 1024);
    let first = call(&peer, "1", Outgoing::default());
    other.read().await;
    peer.draining();
    let error = call(&peer, "2", Outgoing::default()).await.unwrap().unwrap_err();
    assert!(matches!(error, CallError::NotReady { state: StateKind::Draining, .. }), "{error}");
    other.write(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#).await;
    first.await.unwrap().unwrap();
    peer.closing();
    let ping = Outgoing { control: true, ..Outgoing::default() };
    let _ping = call(&peer, "{}", ping);
    assert_eq!(other.read().await["id"], 2, "what belongs to the end still goes out");
}

#[tokio::test]
async fn what_the_other_side_says_is_told_without_secrets_and_not_endlessly() {
    let (peer, mut other) = pair(64 * 1024);
    peer.0.options.redactor.add("s3cr3t-value");
    let call = call(&peer, "1", Outgoing::default());
    other.read().await;
    let message = format!("s3cr3t-value {}", "x".repeat(100_000));
    let error = json!({"code": 1, "message": message, "data": {"key": "s3cr3t-value"}});
    other.write(&json!({"jsonrpc": "2.0", "id": 1, "error": error}).to_string()).await;
    let CallError::Answered { message, data, .. } = call.await.unwrap().unwrap_err() else { panic!() };
    assert!(message.raw().starts_with("[redacted] xxx") && message.raw().len() < 5000);
    assert_eq!(data, Some(json!({"key": "[redacted]"})));
}

#[tokio::test]
async fn progress_may_bring_a_partial_result_and_a_bad_or_large_one_is_none() {
    let (peer, mut other) = pair_with(64 * 1024, Limits { partial_result_bytes: 100, ..Limits::default() });
    let (notes, mut heard) = tokio::sync::broadcast::channel(8);
    let call = call(&peer, "{}", Outgoing { progress: Some(notes), ..Outgoing::default() });
    let id = other.read().await["id"].clone();
    let long = "x".repeat(100);
    let partials = [
        json!({ "content": [{ "type": "text", "text": "so far" }], "details": 1 }),
        json!({ "content": 5 }),
        json!({ "content": [{ "type": "text", "text": long }] }),
    ];
    for (progress, partial) in partials.iter().enumerate() {
        let params =
            json!({ "progressToken": id, "progress": progress, "_meta": { "dev.lemon/partial": partial, "other": 1 } });
        other
            .write(&json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params }).to_string())
            .await;
    }
    let first = heard.recv().await.unwrap().partial.unwrap();
    assert_eq!(first.texts().map(|text| text.raw().to_owned()).collect::<String>(), "so far");
    for _ in 1..partials.len() {
        assert!(heard.recv().await.unwrap().partial.is_none());
    }
    assert_eq!(peer.noise().counts.get("partial_too_large"), Some(&1));
    call.abort();
}
