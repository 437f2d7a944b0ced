type PostgresFields = Partial<Record<'code' | 'table_name' | 'constraint_name' | 'routine', string>>

/**
 * What a log line says about an error. The message and the detail of a database error are left out: they
 * can quote what customers wrote. Errors without a code are bugs, and shown with their stack.
 */
export const errorLogDetails = (error: unknown): Record<string, string | undefined> => {
  const { code, table_name: table, constraint_name: constraint, routine } = error as PostgresFields
  return code ? { code, table, constraint, routine } : { stack: (error as Error).stack }
}
