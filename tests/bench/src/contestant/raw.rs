//! The limit: the same bytes through the same pipes, and nothing else.

use std::io::{Read, Write};
use std::process::{Child, ChildStdin, ChildStdout};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::{Contestant, start_server};
use crate::payload::Payload;

pub(crate) struct Raw {
    small: Pipes,
    large: Pipes,
}

impl Raw {
    pub(crate) fn start(cpu: usize) -> Result<Self> {
        Ok(Self { small: Pipes::start(cpu, &Payload::small())?, large: Pipes::start(cpu, &Payload::large())? })
    }

    fn pipes(&mut self, payload: &Payload) -> Result<&mut Pipes> {
        let all = [&mut self.small, &mut self.large];
        all.into_iter()
            .find(|pipes| pipes.answer == payload.answer_len())
            .context("there is no process for the payload")
    }
}

impl Contestant for Raw {
    fn one_by_one(&mut self, payload: &Payload, times: &mut [Duration]) -> Result<()> {
        let pipes = self.pipes(payload)?;
        for time in times {
            let start = Instant::now();
            pipes.stdin.write_all(&pipes.request)?;
            let mut waiting = pipes.answer;
            while waiting > 0 {
                waiting -= pipes.read()?;
            }
            *time = start.elapsed();
        }
        Ok(())
    }

    fn side_by_side(&mut self, payload: &Payload, calls: usize, width: usize) -> Result<Duration> {
        let pipes = self.pipes(payload)?;
        let requests = pipes.request.repeat(width);
        let (mut sent, mut answered, mut bytes) = (0, 0, 0);
        let start = Instant::now();
        while answered < calls {
            let more = (width - (sent - answered)).min(calls - sent);
            pipes.stdin.write_all(&requests[..more * pipes.request.len()])?;
            sent += more;
            bytes += pipes.read()?;
            answered += bytes / pipes.answer;
            bytes %= pipes.answer;
        }
        Ok(start.elapsed())
    }
}

/// A process for messages of one size, as nothing in them tells where they end.
struct Pipes {
    stdin: ChildStdin,
    stdout: ChildStdout,
    request: Vec<u8>,
    answer: usize,
    buffer: Vec<u8>,
    _child: Child,
}

impl Pipes {
    fn start(cpu: usize, payload: &Payload) -> Result<Self> {
        let mut request = Vec::new();
        payload.request(1000, &mut request);
        let answer = payload.answer_len();
        let words = [cpu, request.len(), answer].map(|number| number.to_string());
        let mut child = start_server(&["serve-bytes", &words[0], &words[1], &words[2]])?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            bail!("there are no pipes")
        };
        Ok(Self { stdin, stdout, request, answer, buffer: vec![0; 64 * 1024], _child: child })
    }

    fn read(&mut self) -> Result<usize> {
        match self.stdout.read(&mut self.buffer)? {
            0 => bail!("the other side is gone"),
            read => Ok(read),
        }
    }
}
