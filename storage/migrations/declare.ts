import type { Migration } from 'kysely/migration'

/**
 * What a migration locks and how long it works, for whoever plans an upgrade. A test compares it with the locks
 * that the migration takes. Locks are held until the end of its transaction.
 */
export type MigrationCost = {
  /** Tables that nobody else can read or write meanwhile. */
  readonly closes?: readonly string[]
  /** Tables that others can read, but not write meanwhile. */
  readonly freezes?: readonly string[]
  /**
   * Seconds of work for each million rows of a table, or that it grows with the data and was not measured. Absent:
   * it changes the catalog of the database alone.
   */
  readonly work?: { readonly seconds: number; readonly of: string } | 'unmeasured'
}

export type DeclaredMigration = Pick<Migration, 'up'> & {
  readonly cost: MigrationCost
  /**
   * The newest migration that a server must know to run on the schema that this one leaves. Servers of the version
   * that ends with it go on while this one is applied. Absent: this one, so that all servers are replaced at once.
   */
  readonly oldest?: string
  /**
   * `none`: it builds indexes concurrently, which no transaction may. It may be cut off anywhere and run again.
   * An empty database has one transaction for all. Absent: one transaction, so that all of it is done or nothing.
   */
  readonly transaction?: 'none'
}

export type MigrationList = Readonly<Record<string, DeclaredMigration>>
