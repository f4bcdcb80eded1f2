//! Real plugins in real processes: what their standard streams, signals and ends look like from outside.

#![expect(clippy::unwrap_used, reason = "a test that can not go on has failed")]
#![expect(clippy::disallowed_methods, reason = "the plugin is the child here, and nothing of the host takes part")]

mod asks;
mod ends;
mod eras;
#[expect(clippy::print_stdout, clippy::print_stderr, clippy::exit, reason = "it does what plugins do by mistake")]
mod plugin;
mod process;
mod vectors;
mod wire;

use libtest_mimic::{Arguments, Trial};

fn main() {
    if std::env::var_os(process::AS_PLUGIN).is_some() {
        plugin::run();
        return;
    }
    macro_rules! tests {
        ($($module:ident: $($name:ident),* $(,)?;)*) => {
            vec![$($(Trial::test(concat!(stringify!($module), "::", stringify!($name)), || {
                $module::$name();
                Ok(())
            }),)*)*]
        };
    }
    let tests = tests! {
        wire:
            what_is_printed_goes_to_stderr_and_not_between_messages,
            a_panic_is_told_on_stderr_and_the_process_lives,
            two_hundred_calls_at_once_are_all_answered,
            twenty_thousand_calls_in_one_go_are_not_too_many,
            megabytes_pass_in_both_directions,
            a_call_that_is_cancelled_while_its_answer_waits_for_room_is_not_answered,
            calls_are_refused_while_megabytes_of_answers_are_not_read,
            what_is_refused_is_answered_however_long_its_words_are,
            a_request_over_sixteen_megabytes_is_refused_and_the_next_one_answered,
            lines_that_are_no_messages_are_dropped,
            a_broken_request_is_refused_under_its_id_where_that_can_be_read,
            a_ping_is_answered_while_calls_run,
            a_ping_is_answered_whatever_it_carries,
            streams_may_be_sockets_or_files;
        ends:
            the_end_of_the_input_ends_the_plugin,
            a_call_that_ends_soon_after_the_input_is_still_answered,
            a_handler_that_hangs_does_not_hold_up_the_end,
            a_handler_that_blocks_the_only_thread_does_not_hold_up_the_end,
            sigterm_ends_the_plugin,
            after_sigterm_a_handler_that_hangs_is_given_up_in_order,
            a_runtime_that_waits_for_a_blocked_thread_does_not_hold_up_the_end,
            sigterm_ends_a_program_that_no_longer_serves,
            what_is_done_at_an_exit_does_not_hold_up_the_end,
            a_socket_that_is_shut_down_in_one_direction_is_an_end_too,
            sigterm_ends_a_plugin_whose_only_thread_is_blocked,
            the_death_of_the_host_ends_the_plugin_though_the_pipe_stays_open,
            a_host_that_died_before_its_offer_was_read_ends_the_plugin,
            a_host_that_can_not_be_seen_does_not_end_the_plugin,
            an_output_that_nobody_reads_any_more_ends_the_plugin,
            an_output_that_is_open_but_never_read_ends_the_plugin,
            what_is_wrong_with_the_plugin_is_told_on_stderr;
        asks:
            after_a_gap_the_state_is_read_anew,
            a_state_that_the_host_did_not_give_is_asked_for_again,
            what_the_host_refuses_has_a_kind,
            a_request_to_the_host_ends_with_the_call_that_it_was_for,
            nothing_is_asked_that_the_host_does_not_offer;
        eras:
            a_client_without_lemon_is_answered_in_the_revision_that_it_asks_for,
            a_lemon_host_is_answered_in_both_maps,
            without_a_common_version_both_lists_are_named,
            a_modern_client_discovers_lists_and_calls,
            a_modern_request_has_its_keys_in_each_request,
            a_request_that_is_refused_makes_no_client_modern,
            a_client_need_not_say_who_it_is,
            another_modern_version_is_refused_with_the_one_that_is_spoken,
            both_eras_may_be_mixed_in_one_process,
            logs_of_a_modern_call_come_only_where_it_asks_for_them,
            a_modern_client_listens_for_changes_until_it_cancels,
            a_stream_of_changes_ends_with_its_result_when_the_plugin_does,
            a_cancelled_call_is_not_answered_in_any_era;
        vectors:
            every_vector_of_the_protocol_is_taken_as_it_says;
    };
    libtest_mimic::run(&Arguments::from_args(), tests).exit();
}
