//! Medians, rows of the table, and what a process keeps in memory.

use std::time::{Duration, Instant};

pub fn headings() {
    println!("{:<46} {:>10} {:>10} {:>7} {:>8}", "what", "ours", "floor", "ratio", "budget");
}

pub fn timed(work: impl FnOnce()) -> Duration {
    let begun = Instant::now();
    work();
    begun.elapsed()
}

fn median(mut times: Vec<Duration>) -> Option<Duration> {
    times.sort();
    times.get(times.len() / 2).copied()
}

pub fn row(what: &str, ours: Vec<Duration>, floor: Vec<Duration>, budget: &str) {
    let (ours, floor) = (median(ours).unwrap(), median(floor));
    let ratio =
        floor.map_or("-".to_owned(), |f| format!("{:.2}×", ours.as_secs_f64() / f.as_secs_f64()));
    let floor = floor.map_or("-".to_owned(), shown);
    println!("{what:<46} {:>10} {floor:>10} {ratio:>7} {budget:>8}", shown(ours));
}

fn shown(time: Duration) -> String {
    let ms = time.as_secs_f64() * 1000.0;
    if ms < 10.0 { format!("{ms:.2} ms") } else { format!("{ms:.0} ms") }
}

/// What a process keeps when it has had nothing to do for a moment: resident, proportional.
pub fn measured(pid: i32) -> [String; 2] {
    std::thread::sleep(Duration::from_secs(3));
    let rollup = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap();
    ["Rss:", "Pss:"].map(|name| {
        let line = rollup.lines().find(|l| l.starts_with(name)).unwrap();
        let kb: f64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
        format!("{:.1} MB", kb / 1024.0)
    })
}

pub fn memory(what: &str, [resident, proportional]: &[String; 2], budget: &str) {
    println!("{what:<46} {resident:>10} {proportional:>10} {:>7} {budget:>8}", "");
}

/// A figure that has no floor.
pub fn figure(what: &str, value: &str, budget: &str) {
    println!("{what:<46} {value:>29} {budget:>8}");
}
