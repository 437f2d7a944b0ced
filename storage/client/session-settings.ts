/** Parameters of a session, such as `statement_timeout`. */
export type SessionSettings = Record<string, string | number>

/**
 * What the service depends on, whatever is set for the server, the database or the role: the texts of values, what
 * a comparison means, and that a statement sees what others have committed before it.
 */
export const SESSION_DEFAULTS: SessionSettings = {
  DateStyle: 'ISO, MDY',
  IntervalStyle: 'postgres',
  bytea_output: 'hex',
  extra_float_digits: 1,
  standard_conforming_strings: 'on',
  transform_null_equals: 'off',
  default_transaction_isolation: 'read committed',
}
