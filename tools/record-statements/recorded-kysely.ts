import { sql as kyselySql } from 'kysely'

export * from 'kysely'

/** The file of each template. The engine makes one array of strings for each place in the source. */
const files = new WeakMap<readonly string[], string>()

export const templateFile = (fragments: readonly string[]): string | undefined => files.get(fragments)

/** The file that called the function that called this one. */
const callingFile = (): string | undefined =>
  /file:\/\/([^:]+):/.exec(new Error().stack!.split('\n')[3]!)?.[1]

/** Kysely's `sql`, which also records the file of each template. */
export const sql = Object.assign((fragments: TemplateStringsArray, ...values: unknown[]) => {
  if (!files.has(fragments)) {
    const file = callingFile()
    if (file !== undefined) files.set(fragments, file)
  }
  return kyselySql(fragments, ...values)
}, kyselySql)
