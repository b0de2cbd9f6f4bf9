//! A process that starts knows of a jump of the wall clock before its start, by
//! what the last writer saw.

gristmill_conformance::clock_tests!(crate::support);
