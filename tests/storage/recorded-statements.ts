import { readFileSync, writeFileSync } from 'node:fs'
import { isInSql, type SqlTemplate } from './sql-templates.ts'

/** A statement as it was sent to the database, with the function that sent it. */
export type RecordedStatement = {
  /** `storage/contacts/contacts.ts findContact` */
  from: string
  /** The files whose templates it is made of. */
  templates: string[]
  /** Types of the parameters that the driver states; absent when the database infers all of them. */
  parameterTypes?: string[]
  /** Its text, line by line. */
  sql: string[]
}

const FILE = 'tests/storage/statements.json'

export const loadStatements = (): RecordedStatement[] =>
  JSON.parse(readFileSync(FILE, 'utf8')) as RecordedStatement[]

export const saveStatements = (statements: readonly RecordedStatement[]): void =>
  writeFileSync(FILE, `${JSON.stringify(statements, null, 2)}\n`)

export const statementText = (statement: RecordedStatement): string => statement.sql.join('\n')

export const covers = (statement: RecordedStatement, template: SqlTemplate): boolean =>
  statement.templates.includes(template.file) && isInSql(template, statementText(statement))
