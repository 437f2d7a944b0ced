import assert from 'node:assert/strict'
import { findOperation } from '../catalog/index.ts'
import { buildContactInsert, type NewContact, reserveContactIds } from '../storage/contacts/contacts.ts'
import { listFields } from '../storage/contacts/custom-fields.ts'
import type { Db } from '../storage/database.ts'
import { runDeferredWrite } from '../storage/client/deferred-write.ts'
import { checked, type Door, doorsOf } from './doors.ts'
import type { TestServer } from './servers.ts'

/** Returns a caller of `/v1/ops`, the quickest door. It throws when an answer does not match the catalog. */
export const callAs = (server: Pick<TestServer, 'url'>, key: string): Door['call'] =>
  checked(doorsOf(server.url, key)[1]!).call

/** The same for calls that must succeed: returns the body, and throws when there is a problem. */
export const doAs =
  (server: Pick<TestServer, 'url'>, key: string) =>
  async (name: string, input?: Record<string, unknown>): Promise<any> => {
    const confirm = findOperation(name)!.confirm
    const { status, body, text } = await callAs(server, key)(name, input, confirm ? { confirm } : {})
    if (status >= 300) throw new Error(`${name}: ${text}`)
    return body
  }

/** Inserts a contact directly, for tests that need many or choose the time. Returns its id. */
export const plantContact = async (
  db: Db,
  workspaceId: string,
  contact: Omit<NewContact, 'types'>,
  now: string,
): Promise<string> => {
  const [id] = await reserveContactIds(db, 1)
  const types = new Map((await listFields(db, workspaceId)).map((field) => [field.id, field.type]))
  await runDeferredWrite(db, buildContactInsert(workspaceId, id!, { ...contact, types }, now))
  return id!
}

/** The fields of a page of contacts that tests use. */
export type ContactsPage = {
  data: { id: string; name: string | null }[]
  total: number | null
  approximate: boolean | null
  next_cursor: string | null
}

/**
 * Reads every page of a list. `limits` are the sizes of the pages in turn; `between` runs after each page
 * but the last.
 */
export const everyPage = async (
  run: ReturnType<typeof doAs>,
  op: string,
  input: Record<string, unknown>,
  limits: readonly number[],
  between: (page: number) => Promise<void> = async () => {},
): Promise<ContactsPage[]> => {
  const pages: ContactsPage[] = []
  let cursor: string | null = null
  do {
    const limit = limits[pages.length % limits.length]!
    const page: ContactsPage = await run(op, { ...input, limit, ...(cursor === null ? {} : { cursor }) })
    assert.ok(page.data.length === limit || page.next_cursor === null, 'a page that is not the last is full')
    pages.push(page)
    cursor = page.next_cursor
    if (cursor !== null) await between(pages.length)
  } while (cursor !== null)
  return pages
}
