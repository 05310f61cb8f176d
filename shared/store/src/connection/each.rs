//! One command for each of several keys.

use super::Store;
use crate::StoreError;
use redis::{FromRedisValue, ToRedisArgs};

impl Store {
    /// Executes one command for each of `args` as [`Store::pipeline`] does, and nothing if there are none.
    ///
    /// # Errors
    /// [`StoreError`], also if a single command failed.
    pub(crate) async fn each<T: FromRedisValue>(
        &self,
        command: &str,
        args: impl IntoIterator<Item = impl ToRedisArgs>,
    ) -> Result<Vec<T>, StoreError> {
        let mut query = redis::pipe();
        for args in args {
            query.cmd(command).arg(args);
        }
        match query.is_empty() {
            true => Ok(Vec::new()),
            false => self.pipeline(&query).await,
        }
    }

    /// Reads the items of a list at these ascending ranks, in one read where they are in a row; `None` beyond its end.
    ///
    /// # Errors
    /// [`StoreError`]
    pub(crate) async fn items_at<T: FromRedisValue>(
        &self,
        list: &str,
        ranks: &[u64],
    ) -> Result<Vec<Option<T>>, StoreError> {
        let (Some(first), Some(last)) = (ranks.first(), ranks.last()) else {
            return Ok(Vec::new());
        };
        if last - first + 1 != ranks.len() as u64 {
            return self.each("LINDEX", ranks.iter().map(|rank| (list, rank))).await;
        }
        let mut range = redis::cmd("LRANGE");
        range.arg(list).arg(*first).arg(*last);
        let found: Vec<T> = self.command(&range).await?;
        let mut found = found.into_iter();
        Ok(ranks.iter().map(|_| found.next()).collect())
    }
}
