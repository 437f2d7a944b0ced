import assert from 'node:assert/strict'
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import type { ContactsPage } from '../calls.ts'
import { createDatabase, databases, type TestDatabase } from '../databases.ts'
import { createOwnerKey } from '../http/owner-key.ts'
import { inDatabaseOf, inNamespaces } from '../namespaces.ts'
import { type ServerProcess, startProcess } from '../process.ts'

const CALLERS = 4
const CHANGES = 40

const root = mkdtempSync(join(tmpdir(), 'wcrm-power-'))
const image = join(root, 'disk.img')
const disk = join(root, 'disk')
mkdirSync(disk)
// A disk whose file has what the kernel has given to it, as after a power cut. It is not written to on its own account.
const mount = (file: string): string => `mount -o loop,commit=600 ${file} ${disk}`
writeFileSync(image, '')
truncateSync(image, 256 * 1024 * 1024)
const wrapper = databases.includes('embedded')
  ? inNamespaces(['--mount'], `mkfs.ext4 -q -F ${image} && ${mount(image)}`)
  : undefined

describe('A power cut', { skip: wrapper ? false : 'this user may not mount a disk image' }, () => {
  let database: TestDatabase
  let key: string
  const servers: ServerProcess[] = []
  before(async () => {
    database = await createDatabase('embedded')
    key = await createOwnerKey(database.location)
  })
  after(async () => {
    for (const server of servers) await server.kill('SIGKILL')
    await database?.remove()
    rmSync(root, { recursive: true, force: true })
  })

  /** Starts a server on the disk of an image. */
  const start = async (file: string, prepare = 'true'): Promise<ServerProcess> => {
    const words = [...wrapper!, 'sh', '-c', `${mount(file)} && ${prepare} && exec "$@"`, 'sh']
    const server = await startProcess(['--data', join(disk, 'data')], {}, words)
    servers.push(server)
    return server
  }
  const call = async ({ url }: ServerProcess, path: string, body?: unknown): Promise<any> => {
    const response = await fetch(`${url}${path}`, {
      method: body === undefined ? 'GET' : 'POST',
      headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    assert.equal(response.status, 200)
    return await response.json()
  }

  it('loses no change that the embedded database has acknowledged', async () => {
    const { dataDir } = database.location as { dataDir: string }
    const copy = `mkdir -m 700 ${disk}/data && cp -r ${dataDir}/. ${disk}/data && sync -f ${disk}`
    const server = await start(image, copy)
    const acknowledged: string[] = []
    let isOn = true
    let next = 0
    const change = async (): Promise<void> => {
      const n = next++
      const { id } = await call(server, '/v1/contacts', { phone: `+1555010${1000 + n}`, tags: ['loyal'] })
      acknowledged.push(id)
    }
    for (let n = 0; n < CHANGES; n++) await change()
    await inDatabaseOf(join(`/proc/${server.pid}/root${disk}`, 'data'), (sql) => sql`checkpoint`)

    const cut = join(root, 'cut.img')
    const work = async (): Promise<void> => {
      while (isOn) await change()
    }
    const callers = Array.from({ length: CALLERS }, work)
    // Its last calls are cut off with it.
    const ended = Promise.allSettled(callers)
    while (acknowledged.length < 2 * CHANGES) await change()
    process.kill(server.pid, 'SIGSTOP')
    const held = [...acknowledged]
    copyFileSync(image, cut)
    isOn = false
    await server.kill('SIGKILL')
    await ended

    const again = await start(cut)
    const found: string[] = []
    for (let cursor: string | null = ''; cursor !== null;) {
      const page: ContactsPage = await call(again, `/v1/contacts?limit=100${cursor && `&cursor=${cursor}`}`)
      found.push(...page.data.map(({ id }) => id))
      cursor = page.next_cursor
    }
    assert.deepEqual(
      held.filter((id) => !found.includes(id)),
      [],
    )
    const { data: tags } = await call(again, '/v1/tags')
    assert.equal(tags[0].contacts_count, found.length)
  })
})
