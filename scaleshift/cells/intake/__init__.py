"""Files of events become a study: planned, written chunk by chunk, resumed after a kill."""
