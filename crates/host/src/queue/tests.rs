use super::job::tests::a_job;
use super::*;

fn queue(jobs: impl IntoIterator<Item = Job>) -> Queue {
    let queue = Queue::default();
    jobs.into_iter().for_each(|job| queue.put(job));
    queue
}

#[test]
fn a_job_is_found_by_a_beginning_that_no_other_has() {
    let queue = queue([0xab, 0xac, 0xb0].map(a_job));
    assert_eq!(queue.find("ab").unwrap().id, a_job(0xab).id);
    assert_eq!(queue.find("b00000000000").unwrap().id, a_job(0xb0).id);
    assert_eq!(queue.find("a").unwrap_err().code, ErrorCode::Usage);
    for unknown in ["c", "", "b000000000001"] {
        assert_eq!(queue.find(unknown).unwrap_err().code, ErrorCode::Failed, "{unknown}");
    }
}

#[test]
fn the_oldest_that_waits_is_first() {
    let mut begun = a_job(1);
    begun.status = JobStatus::Running;
    let queue = queue([begun, a_job(3), a_job(2)]);
    assert_eq!(queue.first().unwrap().id, a_job(3).id);
    assert_eq!(queue.counts(), JobCounts { queued: 2, running: 1 });
}

#[test]
fn jobs_that_are_over_are_kept_for_a_day() {
    let at = |n: u8, finished: Millis| {
        let mut job = a_job(n);
        job.end(JobStatus::Done, finished);
        job
    };
    let now = 10 * KEPT_FOR;
    let queue = queue([at(1, now - KEPT_FOR - 1), at(2, now - KEPT_FOR), a_job(3)]);
    assert_eq!(queue.old(now), [a_job(1).id]);
    for n in 10..(10 + u8::try_from(KEPT).unwrap()) {
        queue.put(at(n, now));
    }
    assert_eq!(queue.old(now), [a_job(1).id, a_job(2).id]);
}

#[test]
fn the_end_of_a_log_is_read_whatever_is_in_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log");
    assert_eq!(last_lines(&path, 3), [""; 0]);
    std::fs::write(&path, b"one\ntwo\n\xff\n").unwrap();
    assert_eq!(last_lines(&path, 2), ["two", "\u{fffd}"]);
    assert_eq!(last_lines(&path, 0), [""; 0]);
}

#[test]
fn who_has_no_login_is_told_which_one() {
    let error = no_login(Agent::Claude);
    assert_eq!(error.code, ErrorCode::Usage);
    assert!(error.hints[0].contains("ANTHROPIC_API_KEY or CLAUDE_CODE_OAUTH_TOKEN"), "{error:?}");
    assert!(!error.hints[0].contains("BASE_URL"));
}
