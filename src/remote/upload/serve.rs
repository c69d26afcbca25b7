//! Main loop of the uploader: executes the consumer's requests one by one, and notices the
//! consumer's end meanwhile.
//!
//! Runs in the uploader. Ends with its consumer, and then aborts its unfinished upload. Logs
//! nothing; errors are sent to the consumer.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::pin::pin;
use std::time::Duration;

use futures_util::future::{Either, select};

use crate::error::{Error, Result};
use crate::remote::helper::helper_loop;
use crate::remote::helper::helper_loop::HelperConnection;
use crate::remote::helper::messages::{HelperError, name_of};
use crate::remote::helper::progress::ProgressReports;
use crate::remote::store::client::Store;
use crate::remote::upload::messages::{UploadReply, UploadRequest};
use crate::remote::upload::object::CacheObjects;
use crate::remote::upload::parts::{OpenUpload, UploadFile};
use crate::remote::upload::shard;

/// At the end, how long to wait for a file that is being written in a folder as the store.
/// Otherwise half a file would stay.
const PATIENCE: Duration = Duration::from_millis(500);

/// Runs an uploader on `socket`; returns its exit status.
pub(super) fn run_uploader(socket: OwnedFd) -> i32 {
    let open = OpenUpload::default();
    helper_loop::run_helper(
        socket,
        c"featherload-se",
        async |connection| serve(connection, &open).await,
        async || open.abort().await,
        PATIENCE,
    )
}

async fn serve(connection: &HelperConnection, open: &OpenUpload) -> Result<()> {
    let mut objects: Option<CacheObjects> = None;
    let mut requests: VecDeque<UploadRequest> = VecDeque::new();
    let mut reports = ProgressReports::for_command();
    loop {
        while let Some((request, _)) = connection.receive()? {
            requests.push_back(request);
        }
        let Some(request) = requests.pop_front() else {
            connection.readable().await?;
            continue;
        };
        let reply = {
            let done = connection.reporting(&mut reports, answer(&mut objects, open, request));
            let mut done = pin!(done);
            loop {
                match select(done, pin!(connection.readable())).await {
                    Either::Left((reply, _)) => break reply,
                    Either::Right((ready, more)) => {
                        ready?;
                        while let Some((request, _)) = connection.receive()? {
                            requests.push_back(request);
                        }
                        done = more;
                    }
                }
            }
        };
        match reply? {
            Ok(reply) => connection.reply(&reply)?,
            Err(error) => return connection.give_up(error),
        }
    }
}

async fn answer(
    objects: &mut Option<CacheObjects>,
    open: &OpenUpload,
    request: UploadRequest,
) -> std::result::Result<UploadReply, HelperError> {
    let objects = match (&request, objects) {
        (UploadRequest::Open { address }, objects) => {
            *objects = Some(CacheObjects::new(
                Store::open_to_send(address)?,
                open.clone(),
            ));
            return Ok(UploadReply::Done);
        }
        (_, Some(objects)) => objects,
        (request, None) => {
            let e = Error::protocol(format!("{} came out of order", name_of(request)));
            return Err(HelperError::new("the sender", e.to_string()));
        }
    };
    Ok(match request {
        UploadRequest::Open { .. } => UploadReply::Done,
        UploadRequest::Get { name, to } => UploadReply::Found(objects.get_into(&name, &to).await?),
        UploadRequest::Has { name } => UploadReply::Found(objects.size(&name).await?.is_some()),
        UploadRequest::Look { folder, shards } => {
            UploadReply::There(shard::look(objects, &folder, &shards).await?)
        }
        UploadRequest::Begin { from, over } => {
            UploadReply::Begun(shard::begin(objects, &from, over).await?)
        }
        UploadRequest::Send {
            folder,
            shard,
            replace,
        } => {
            shard::send(objects, &folder, &shard, replace).await?;
            let counts = objects.take_counts();
            UploadReply::Up { shard, counts }
        }
        UploadRequest::Put {
            name,
            from,
            bytes,
            hash,
        } => {
            let path = &from;
            let whole = UploadFile { path, bytes, hash };
            objects.put_file(&name, &whole, true).await?;
            UploadReply::Ended(objects.take_counts())
        }
        UploadRequest::Remove { shards } => {
            shard::remove(objects, &shards).await?;
            UploadReply::Done
        }
        UploadRequest::End {
            folder,
            over,
            replace,
        } => {
            shard::end(objects, &folder, over, replace).await?;
            UploadReply::Ended(objects.take_counts())
        }
    })
}
