import assert from 'node:assert/strict'
import { randomBytes, randomInt } from 'node:crypto'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { sql } from 'kysely'
import type { Db } from '../../storage/database.ts'
import { openStorage } from '../../storage/open.ts'
import { doAs } from '../calls.ts'
import { createDatabase, databases, withStorage } from '../databases.ts'
import { readPersonArchive, sha256 } from '../exports/archive.ts'
import { readMemory } from '../http/owner-key.ts'
import { startProcess } from '../process.ts'
import { makeWorkspace } from '../servers.ts'

const MESSAGES = 100_000
const FILES = 4
const FILE_BYTES = 100 * 1024 * 1024
const KILLS = 6
/** What a server that has just begun loads and compiles, and rows and buffers of a few steps: a file in it is more. */
const MAX_GROWTH_BYTES = 160 * 1024 * 1024

const isPossible = databases.includes('postgresql') ? {} : { skip: 'there is no PostgreSQL' }

/** A contact with a long history, and large files. Returns its id. */
const seed = async (db: Db, workspaceId: string, folder: string): Promise<string> => {
  const { rows } = await sql<{ contact: string; conversation: string }>`
    with c as (insert into contacts (workspace_id, name, created_at, updated_at)
      values (${workspaceId}, 'Ada Lovelace', now(), now()) returning id),
    f as (insert into contact_facts (workspace_id, contact_id) select ${workspaceId}, id from c)
    insert into conversations (workspace_id, contact_id, state, created_at, updated_at)
    select ${workspaceId}, id, 'open', now(), now() from c
    returning contact_id as contact, id as conversation`.execute(db)
  const { contact, conversation } = rows[0]!
  await sql`
    insert into messages (workspace_id, conversation_id, direction, type, status, text, created_at)
    select ${workspaceId}, ${conversation}::bigint, 'outbound', 'TEXT', 'failed', 'Message ' || n,
      now() - n * interval '1 minute' from generate_series(1, ${MESSAGES}) as n`.execute(db)
  const { rows: last } = await sql<{ id: string }>`
    select id from messages where workspace_id = ${workspaceId} order by id limit ${FILES}`.execute(db)
  mkdirSync(join(folder, workspaceId))
  for (const { id } of last) {
    const data = randomBytes(FILE_BYTES)
    writeFileSync(join(folder, workspaceId, id), data)
    await sql`
      insert into media (workspace_id, message_id, state, content_type, size, sha256, key)
      values (${workspaceId}, ${id}::bigint, 'kept', 'application/pdf', ${FILE_BYTES}, ${sha256(data)},
        ${`${workspaceId}/${id}`})`.execute(db)
  }
  return contact
}

describe('Servers that are killed while they export a person', isPossible, () => {
  it('make one whole archive in flat memory, and leave no other part', async () => {
    const { location, flags, remove } = await createDatabase('postgresql')
    const folder = mkdtempSync(join(tmpdir(), 'wcrm-exports-'))
    const workspace = await withStorage(location, ({ db }) =>
      makeWorkspace({ db, app: { now: () => new Date().toISOString() } as never }),
    )
    const storage = await openStorage(location, { noTimeout: true })
    const { db } = storage
    const env = { WCRM_SECRET: 'a secret of at least sixteen', WCRM_MEDIA: folder }
    let server = await startProcess(flags, env)
    try {
      const contactId = await seed(db, workspace.id, folder)
      const { export: made } = await doAs(server, workspace.owner.key)('crm_export_person', {
        contact_id: contactId,
      })
      let growth = 0
      const watch = async (until: () => Promise<boolean>): Promise<void> => {
        const before = readMemory(server.pid)
        while (!(await until())) {
          growth = Math.max(growth, readMemory(server.pid) - before)
          await pause(20)
        }
      }
      for (let n = 0; n < KILLS; n++) {
        const at = performance.now() + randomInt(100, 1500)
        await watch(async () => performance.now() > at)
        await server.kill('SIGKILL')
        // Sooner than its lease is over.
        await sql`update runs set run_after = now()`.execute(db)
        server = await startProcess(flags, env)
      }
      const run = doAs(server, workspace.owner.key)
      const get = () => run('crm_get_export', { export_id: made.id })
      await watch(async () => (await get()).state === 'done')
      const shown = await get()
      const bytes = Buffer.from(await (await fetch(shown.url)).arrayBuffer())
      assert.equal(sha256(bytes), shown.sha256)
      const { rowsOf, manifest } = readPersonArchive(bytes)
      const ids = rowsOf('messages').map(({ id }) => id)
      assert.deepEqual([ids.length, new Set(ids).size], [MESSAGES, MESSAGES])
      const { rows: media } = await sql<{ sha256: string }>`select sha256 from media`.execute(db)
      const copied = manifest.files.filter(({ name }: { name: string }) => name.startsWith('media/'))
      assert.deepEqual(
        copied.map((file: { sha256: string }) => file.sha256).sort(),
        media.map((file) => file.sha256).sort(),
      )
      // What dead servers wrote last.
      await sql`update export_parts set lease_until = now() where size is null`.execute(db)
      const countFiles = () => readdirSync(join(folder, 'exports', workspace.id)).length
      const { rows: parts } = await sql`select from export_parts where size is not null`.execute(db)
      for (const until = performance.now() + 30_000; countFiles() > parts.length + KILLS; await pause(100))
        assert.ok(performance.now() < until, `${countFiles()} files for ${parts.length} parts`)
      assert.ok(growth < MAX_GROWTH_BYTES, `grew by ${Math.round(growth / 1024 / 1024)} MB`)
      console.log(
        `${parts.length} parts, ${shown.size} bytes, grew by ${Math.round(growth / 1024 / 1024)} MB`,
      )
    } finally {
      await server.kill('SIGKILL')
      await storage.close()
      rmSync(folder, { recursive: true })
      await remove()
    }
  })
})
