import type { ColumnType } from 'kysely'

/**
 * A column as the schema has it, with the types that it has in statements. The description exists at
 * run time so that tests/storage/schema.test.ts can compare it with the migrated schema.
 */
export type Column<Select = unknown, Insert = unknown, Update = unknown> = {
  /** PostgreSQL's name of the type, without length or precision. */
  readonly dataType: string
  readonly isNullable: boolean
  /** The database fills the column in when an insert leaves it out. */
  readonly hasDefault: boolean
  /** Computed by the database, never written. */
  readonly isGenerated: boolean
  /** The only values that a check constraint allows. */
  readonly values?: readonly string[]
  /** Carries the types; absent at run time. */
  readonly types?: ColumnType<Select, Insert, Update>
}

export type Table = Readonly<Record<string, Column>>

/** The table type that Kysely works with. */
export type TableTypes<T> = {
  [K in keyof T]: T[K] extends Column<infer Select, infer Insert, infer Update>
    ? ColumnType<Select, Insert, Update>
    : never
}

const column = <Select, Write = Select>(dataType: string): Column<Select, Write, Write> => ({
  dataType,
  isNullable: false,
  hasDefault: false,
  isGenerated: false,
})

export const text = <T extends string = string>(): Column<T, T, T> => column('text')
/** Text that a check constraint limits to these values. */
export const oneOf = <const T extends string>(...values: T[]): Column<T, T, T> => ({
  ...column<T>('text'),
  values,
})
/** Read as a decimal string, since it may exceed what a number holds. */
export const bigint = (): Column<string, string | number, string | number> => column('bigint')
export const integer = (): Column<number, number, number> => column('integer')
export const smallint = (): Column<number, number, number> => column('smallint')
export const double = (): Column<number, number, number> => column('double precision')
/** Read as a decimal string, exactly as it was written. */
export const numeric = (): Column<string, string, string> => column('numeric')
export const boolean = (): Column<boolean, boolean, boolean> => column('boolean')
/** ISO 8601 UTC with milliseconds. */
export const timestamp = (): Column<string, string, string> => column('timestamp with time zone')
export const uuid = (): Column<string, string, string> => column('uuid')
/** A transaction id that does not wrap around. */
export const xid8 = (): Column<string, string, string> => column('xid8')
export const bytes = (): Column<Uint8Array, Uint8Array, Uint8Array> => column('bytea')
export const jsonb = <T = unknown>(): Column<T, T, T> => column('jsonb')
/** JSON with its text as it was written. */
export const json = <T = unknown>(): Column<T, T, T> => column('json')
export const textArray = (): Column<string[], string[], string[]> => column('text[]')
export const timestampArray = (): Column<string[], string[], string[]> => column('timestamp with time zone[]')
export const integerArray = (): Column<number[], number[], number[]> => column('integer[]')
export const bigintArray = (): Column<string[], string[], string[]> => column('bigint[]')

export const nullable = <S, I, U>({
  types: _,
  ...rest
}: Column<S, I, U>): Column<S | null, I | null, U | null> => ({ ...rest, isNullable: true })

export const withDefault = <S, I, U>({
  types: _,
  ...rest
}: Column<S, I, U>): Column<S, I | undefined, U> => ({
  ...rest,
  hasDefault: true,
})

export const generated = <S, I, U>({ types: _, ...rest }: Column<S, I, U>): Column<S, never, never> => ({
  ...rest,
  isGenerated: true,
})

/** A bigint that the database counts up when an insert leaves it out. */
export const identity = (): Column<string, string | number | undefined, string | number> =>
  withDefault(bigint())
