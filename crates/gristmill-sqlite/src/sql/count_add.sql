UPDATE gristmill_count SET
    ready = ready + ?2, delayed = delayed + ?3, blocked = blocked + ?4,
    processing = processing + ?5, failed_now = failed_now + ?6, done_kept = done_kept + ?7,
    put = put + ?8, duplicate = duplicate + ?9, replaced = replaced + ?10,
    refused = refused + ?11, claimed = claimed + ?12, done = done + ?13,
    retried = retried + ?14, failed = failed + ?15, released = released + ?16,
    expired = expired + ?17, lease_lost = lease_lost + ?18, cancelled = cancelled + ?19,
    discarded = discarded + ?20, resolved = resolved + ?21,
    operator_retried = operator_retried + ?22, subject_gone = subject_gone + ?23
 WHERE queue = ?1;
