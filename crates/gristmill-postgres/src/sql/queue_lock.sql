-- One declaration at a time: what it decides on does not change meanwhile.
SELECT one FROM gristmill.meta FOR UPDATE
