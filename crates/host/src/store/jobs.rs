//! Background jobs, in the order in which they came.

use super::{Result, Store};
use crate::queue::Job;
use protocol::JobId;
use rusqlite::params;

impl Store {
    /// Keeps a job, new or known.
    pub async fn put_job(&self, job: &Job) -> Result<()> {
        let (id, text) = (job.id.to_string(), serde_json::to_string(job)?);
        self.run(move |conn| {
            conn.execute(
                "INSERT INTO jobs (id, job) VALUES (?1, ?2)
                 ON CONFLICT (id) DO UPDATE SET job = excluded.job",
                params![id, text],
            )?;
            Ok(())
        })
        .await
    }

    /// All jobs, oldest first.
    pub async fn jobs(&self) -> Result<Vec<Job>> {
        self.run(|conn| {
            let mut query = conn.prepare("SELECT job FROM jobs ORDER BY seq")?;
            let rows = query.query_map([], |r| r.get::<_, String>(0))?;
            rows.map(|row| Ok(serde_json::from_str(&row?)?)).collect()
        })
        .await
    }

    pub async fn remove_jobs(&self, ids: &[JobId]) -> Result<()> {
        let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
        self.run(move |conn| {
            let tx = conn.transaction()?;
            for id in ids {
                tx.execute("DELETE FROM jobs WHERE id = ?1", [id])?;
            }
            Ok(tx.commit()?)
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::job::tests::a_job;
    use protocol::queue::JobStatus;

    #[tokio::test]
    async fn jobs_stay_in_the_order_in_which_they_came() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("db")).unwrap();
        let mut all: Vec<Job> = [3, 1, 2].map(a_job).into();
        for job in &all {
            store.put_job(job).await.unwrap();
        }
        all[0].status = JobStatus::Running;
        store.put_job(&all[0]).await.unwrap();
        let ids = |jobs: &[Job]| jobs.iter().map(|j| j.id.clone()).collect::<Vec<_>>();
        let kept = store.jobs().await.unwrap();
        assert_eq!(ids(&kept), ids(&all));
        assert_eq!(kept[0].status, JobStatus::Running);
        store.remove_jobs(&ids(&all[1..])).await.unwrap();
        assert_eq!(ids(&store.jobs().await.unwrap()), ids(&all[..1]));
    }
}
