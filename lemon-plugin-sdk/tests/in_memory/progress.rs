//! How far a call has got, and what it has so far: who is told, and how often.

use std::sync::atomic::AtomicUsize;

use super::*;

#[tokio::test(start_paused = true)]
async fn progress_only_grows_and_its_last_word_is_never_lost() {
    let client = with(async |ctx: Context| {
        for step in [1.0, 2.0, 2.0, 1.0, f64::NAN] {
            ctx.progress(step, 100.0, "");
        }
        for step in 3..=100 {
            ctx.progress(step, 100.0, format!("step {step}"));
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        ctx.progress(101, (), "");
    })
    .test_client()
    .await
    .unwrap();
    let progress = client.start("tool", json!({})).finished().await.progress;
    let steps: Vec<f64> = progress.iter().map(|seen| seen.progress).collect();
    assert!(steps.is_sorted_by(|a, b| a < b), "{steps:?}");
    assert!(steps.len() < 25, "no more than a person can follow: {steps:?}");
    assert_eq!(steps[..3], [1.0, 2.0, 3.0]);
    assert_eq!(steps[steps.len() - 2..], [100.0, 101.0]);
    assert_eq!(progress[steps.len() - 2].message.as_deref(), Some("step 100"));
}

#[tokio::test(start_paused = true)]
async fn progress_comes_twenty_times_a_second_and_large_results_so_far_less_often() {
    let steps = async |bytes: usize| {
        let plugin = with(move |ctx: Context| async move {
            for step in 0..200 {
                if bytes == 0 {
                    ctx.progress(step, Some(200_u64), "");
                } else {
                    ctx.partial(ToolOutput::text("x".repeat(bytes)));
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        });
        plugin.test_client().await.unwrap().start("tool", json!({})).finished().await.progress
    };
    let progress = steps(0).await;
    assert_eq!((progress[0].total, progress.last().unwrap().progress), (Some(200.0), 199.0));
    // Two seconds, those that may come at once, and the last.
    assert!((50..=58).contains(&progress.len()), "{}", progress.len());
    let large = steps(1 << 18).await.len();
    assert!((5..=16).contains(&large), "{large} of a quarter of a megabyte each");
}

#[tokio::test(start_paused = true)]
async fn a_result_so_far_is_only_made_if_it_is_shown() {
    let (made, total) = (Arc::new(AtomicUsize::new(0)), 1_000);
    let plugin = || {
        let made = made.clone();
        with(move |ctx: Context| {
            let made = made.clone();
            async move {
                for step in 0..total {
                    ctx.progress(step, total, "");
                    ctx.partial_with(|| ToolOutput::text(made.fetch_add(1, Ordering::SeqCst).to_string()));
                }
            }
        })
    };
    let client = Client::builder().plain_mcp().connect(plugin()).await.unwrap();
    client.call("tool", json!({})).await.unwrap();
    assert_eq!(made.load(Ordering::SeqCst), 0, "a plain client takes none");
    let client = plugin().test_client().await.unwrap();
    let progress = client.start("tool", json!({})).finished().await.progress;
    let shown = progress.iter().filter(|seen| seen.partial.is_some()).count();
    assert!(shown > 1 && made.load(Ordering::SeqCst) <= shown + 1, "{shown} {made:?}");
}

#[tokio::test]
async fn a_thread_of_the_plugins_own_tells_of_progress_too() {
    let client = plugin()
        .add_tool(Tool::blocking("thread", "", |_: NoArgs, ctx: Context| {
            let thread = std::thread::spawn(move || (0..100).for_each(|step| ctx.progress(step, (), "")));
            thread.join().map_err(|_| "the thread panicked")
        }))
        .test_client()
        .await
        .unwrap();
    let done = client.start("thread", json!({})).finished().await;
    assert!(!done.outcome.unwrap().is_error());
    assert_eq!(done.progress.last().unwrap().progress, 99.0);
}

#[tokio::test]
async fn partial_results_are_for_lemon_hosts_only() {
    let partial = || {
        with(async |ctx: Context| {
            ctx.progress(3, 5.0, "half");
            ctx.partial(ToolOutput::text("one"));
            ctx.partial(ToolOutput::text("one two"));
            ToolOutput::text("one two three").details(json!({"words": 3}))
        })
    };
    let client = partial().test_client().await.unwrap();
    let done = client.start("tool", json!({})).finished().await;
    let shown: Vec<_> = done.progress.iter().filter_map(|seen| seen.partial.clone()).collect();
    assert_eq!(serde_json::to_value(&shown).unwrap()[1], json!([{"type": "text", "text": "one two"}]));
    assert!(done.progress.iter().is_sorted_by(|a, b| a.progress < b.progress), "as MCP has it");
    assert_eq!((done.progress[2].total, done.progress[2].message.as_deref()), (Some(5.0), Some("half")));
    assert_eq!(done.outcome.unwrap().details(), Some(&json!({"words": 3})));

    let client = Client::builder().plain_mcp().connect(partial()).await.unwrap();
    let done = client.start("tool", json!({})).finished().await;
    assert_eq!(done.progress.len(), 1);
    assert_eq!(done.outcome.unwrap().details(), None);
}

#[tokio::test]
async fn a_partial_result_that_is_too_large_leaves_the_progress() {
    let plugin = with(async |ctx: Context| {
        ctx.progress(1, (), "");
        ctx.partial(ToolOutput::text("x".repeat(20_000)));
    });
    let client = Client::builder().max_message_bytes(10_000).connect(plugin).await.unwrap();
    let progress = client.start("tool", json!({})).finished().await.progress;
    assert_eq!(progress.len(), 2);
    assert!(progress.iter().all(|seen| seen.partial.is_none()));
}
