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
}
