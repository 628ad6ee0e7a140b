//! The ways of a gate to the keeper.

use std::{
    io,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use periapt_host_api::pod::DialOrder;
use tokio::net::UnixStream;

use crate::calls::ask;

/// The sockets whose other ends pods read, and pass on to the keeper. A gate that several containers share has one of
/// each.
#[derive(Debug, Default)]
pub(in super::super) struct GateCalls(Mutex<Vec<Arc<UnixStream>>>);

impl GateCalls {
    /// Adds the socket of a pod.
    pub(in super::super) fn add(&self, calls: UnixStream) -> Arc<UnixStream> {
        let way = Arc::new(calls);
        self.ways().push(Arc::clone(&way));
        way
    }

    /// Removes the socket of a pod that has ended.
    pub(in super::super) fn remove(&self, way: &Arc<UnixStream>) {
        self.ways().retain(|known| !Arc::ptr_eq(known, way));
    }

    /// Asks the keeper for a connection, or about a name, by the pod that has served longest.
    ///
    /// # Errors
    /// `NotConnected` if there is no pod; else those of [`ask`].
    pub(super) async fn ask(&self, order: &DialOrder, within: Duration) -> io::Result<UnixStream> {
        loop {
            let way = self.ways().first().cloned();
            let way = way.ok_or(io::ErrorKind::NotConnected)?;
            match ask(order, &way, within).await {
                // The pod has ended, and has heard nothing of it.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => self.remove(&way),
                asked => return asked,
            }
        }
    }

    fn ways(&self) -> std::sync::MutexGuard<'_, Vec<Arc<UnixStream>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use periapt_helper::DescriptorLines;
    use periapt_host_api::pod::OPENED;
    use tokio::io::Interest;

    use super::*;

    #[tokio::test]
    async fn a_gate_asks_by_a_pod_that_is_there() {
        let (calls, within) = (GateCalls::default(), Duration::from_secs(30));
        let order = DialOrder { host: "db-0".to_owned(), port: 5432 };
        let nobody = calls.ask(&order, within).await.unwrap_err();
        assert_eq!(nobody.kind(), io::ErrorKind::NotConnected);
        let pods = [(); 3].map(|()| UnixStream::pair().unwrap());
        let [(first, ended), (second, pod), (third, other)] = pods;
        let [_, _, third] = [first, second, third].map(|socket| calls.add(socket));
        drop(ended);
        calls.remove(&third);
        drop(other);
        let answers = async {
            let mut lines = DescriptorLines::new(4 << 10);
            pod.async_io(Interest::READABLE, || lines.receive(&pod)).await.unwrap();
            let asked: DialOrder = serde_json::from_slice(&lines.line().unwrap().unwrap()).unwrap();
            let stream = std::os::unix::net::UnixStream::from(lines.descriptor().unwrap());
            (&stream).write_all(&[OPENED]).unwrap();
            (asked.host, asked.port)
        };
        let (asked, told) = tokio::join!(calls.ask(&order, within), answers);
        asked.unwrap();
        assert_eq!(told, ("db-0".to_owned(), 5432));
        assert_eq!(calls.ways().len(), 1, "the others are forgotten");
    }
}
