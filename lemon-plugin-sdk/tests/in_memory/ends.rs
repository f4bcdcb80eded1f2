//! How calls end when they are cancelled, and what a plugin does at its own end.

use super::*;

#[tokio::test]
async fn a_cancelled_handler_may_put_things_in_order_and_is_heard_of_once_it_has() {
    let tidy = Arc::new(AtomicBool::new(false));
    let client = with({
        let tidy = tidy.clone();
        move |ctx| {
            let tidy = tidy.clone();
            async move {
                ctx.progress(1, (), "started");
                ctx.cancelled().await;
                tokio::task::yield_now().await;
                tidy.store(true, Ordering::SeqCst);
                "nobody reads this"
            }
        }
    })
    .test_client()
    .await
    .unwrap();
    let call = client.start("tool", json!({}));
    call.cancel();
    assert!(matches!(call.finished().await.outcome, Err(Error::NoAnswer)));
    assert!(tidy.load(Ordering::SeqCst), "settled is said at the handler's end");
}

#[tokio::test]
async fn a_cancelled_handler_that_blocks_has_settled_when_its_thread_is_done() {
    let (open, gate) = std::sync::mpsc::sync_channel::<()>(1);
    let (gate, done) = (std::sync::Mutex::new(gate), Arc::new(AtomicBool::new(false)));
    let (sender, mut started) = mpsc::channel(1);
    let tool = Tool::blocking("tool", "", {
        let done = done.clone();
        move |_: NoArgs, _: Context| {
            let _ = sender.blocking_send(());
            let _ = gate.lock().map(|gate| gate.recv());
            done.store(true, Ordering::SeqCst);
        }
    });
    let client = plugin().cancel_grace(Duration::ZERO).add_tool(tool).test_client().await.unwrap();
    let call = client.start("tool", json!({}));
    started.recv().await.unwrap();
    call.cancel();
    let mut finished = Box::pin(call.finished());
    for _ in 0..3 {
        tokio::select! {
            biased;
            _ = &mut finished => panic!("its thread still runs"),
            answer = client.request("ping", json!({})) => drop(answer.unwrap()),
        }
    }
    open.send(()).unwrap();
    assert!(matches!(finished.await.outcome, Err(Error::NoAnswer)));
    assert!(done.load(Ordering::SeqCst));
}

#[tokio::test]
async fn a_cancelled_call_tells_no_progress_and_logs_for_lemon_hosts_only() {
    for lemon in [true, false] {
        let (sender, mut steps) = mpsc::channel(4);
        let plugin = with(move |ctx: Context| {
            let sender = sender.clone();
            async move {
                ctx.progress(1, (), "");
                sender.send("started").await.unwrap();
                ctx.cancelled().await;
                ctx.progress(2, (), "");
                ctx.log(Level::Error, "undone");
                sender.send("over").await.unwrap();
            }
        });
        let builder = if lemon { Client::builder() } else { Client::builder().plain_mcp() };
        let client = builder.connect(plugin).await.unwrap();
        let call = client.start("tool", json!({}));
        assert_eq!(steps.recv().await, Some("started"));
        call.cancel();
        assert_eq!(steps.recv().await, Some("over"));
        client.request("ping", json!({})).await.unwrap();
        let seen = if lemon { call.finished().await.progress } else { call.progress() };
        assert_eq!((seen.len(), client.logs().len()), (1, usize::from(lemon)));
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_ignores_its_cancellation_is_dropped_and_says_nothing_more() {
    struct Dropped(Arc<AtomicBool>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    let dropped = Arc::new(AtomicBool::new(false));
    let (sender, mut kept) = mpsc::channel(1);
    let client = with({
        let dropped = dropped.clone();
        move |ctx| {
            let (guard, sender) = (Dropped(dropped.clone()), sender.clone());
            async move {
                let _guard = guard;
                sender.send(ctx).await.unwrap();
                pending::<()>().await;
            }
        }
    })
    .test_client()
    .await
    .unwrap();
    let call = client.start("tool", json!({}));
    let context = kept.recv().await.unwrap();
    call.cancel();
    assert!(matches!(call.finished().await.outcome, Err(Error::NoAnswer)));
    assert!(dropped.load(Ordering::SeqCst));
    context.log(Level::Error, "too late");
    assert_eq!(context.host().tools().await, Err(HostError::NotOffered { method: "host/tools/list" }));
    client.request("ping", json!({})).await.unwrap();
    assert!(client.logs().is_empty());
}

#[tokio::test]
async fn what_a_handler_left_behind_is_told_that_its_call_is_over() {
    let (sender, mut over) = mpsc::channel(1);
    let plugin = with(move |ctx: Context| {
        let sender = sender.clone();
        async move {
            tokio::spawn(async move {
                ctx.cancelled().await;
                sender.send(ctx.host().tools().await).await.unwrap();
            });
        }
    });
    let host = |_: &str, _: Value| Ok(json!({"tools": []}));
    let client = Client::builder().host(host).connect(plugin).await.unwrap();
    client.call("tool", json!({})).await.unwrap();
    assert_eq!(over.recv().await, Some(Err(HostError::Over)));
}

/// A plugin that says what it does at its end; the words end when the plugin is gone.
fn with_words() -> (Plugin, mpsc::Receiver<&'static str>) {
    let (sender, words) = mpsc::channel(8);
    let plugin = with(async |_: Context| ())
        .cancel_grace(Duration::ZERO)
        .on_shutdown(|| -> std::future::Ready<()> { panic!("before there is a future") })
        .on_shutdown(move || {
            let sender = sender.clone();
            async move {
                let _ = sender.send("begins").await;
                tokio::time::sleep(Duration::from_millis(500)).await;
                let _ = sender.send("ends").await;
            }
        });
    (plugin, words)
}

async fn all(mut words: mpsc::Receiver<&'static str>) -> Vec<&'static str> {
    let mut all = Vec::new();
    while let Some(word) = words.recv().await {
        all.push(word);
    }
    all
}

#[tokio::test(start_paused = true)]
async fn after_a_shutdown_only_pings_are_answered_and_what_is_put_away_is_put_away_once() {
    let (plugin, words) = with_words();
    let client = plugin.test_client().await.unwrap();
    client.request("lemon/shutdown", json!({"reason": "exit"})).await.unwrap();
    assert_eq!(client.call("tool", json!({})).await.unwrap_err().kind(), Some(Kind::ShuttingDown));
    client.request("ping", json!({})).await.unwrap();
    drop(client);
    assert_eq!(all(words).await, ["begins", "ends"]);

    let (plugin, words) = with_words();
    plugin.test_client().await.unwrap().shutdown().await.unwrap();
    assert_eq!(all(words).await, ["begins", "ends"]);
}

#[tokio::test(start_paused = true)]
async fn an_input_that_ends_during_a_shutdown_does_not_disturb_it() {
    let (plugin, mut words) = with_words();
    let client = plugin.test_client().await.unwrap();
    tokio::select! {
        _ = client.request("lemon/shutdown", json!({"reason": "exit"})) => panic!("it is not over"),
        word = words.recv() => assert_eq!(word, Some("begins")),
    }
    drop(client);
    assert_eq!(all(words).await, ["ends"]);

    let (plugin, words) = with_words();
    drop(plugin.test_client().await.unwrap());
    assert_eq!(all(words).await, ["begins", "ends"], "without a shutdown too");
}
