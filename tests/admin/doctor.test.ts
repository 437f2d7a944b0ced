import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { sql } from 'kysely'
import type { Db } from '../../storage/database.ts'
import { createWorkspace } from '../../storage/workspace/admin.ts'
import { runAdmin, runAdminWith, useAdminDatabases } from './admin-commands.ts'

const NOW = '2026-10-01T09:30:00.000Z'

describe('wcrm admin doctor', () => {
  const { newFolder, open } = useAdminDatabases()

  /** A folder with these contacts in each of its workspaces, as an older version left them. */
  const createFolder = async (
    t: TestContext,
    contacts: readonly [phone: string | null, userId: string | null][],
    count = 1,
    insertMore: (db: Db) => Promise<void> = async () => {},
  ) => {
    const folder = newFolder()
    // Open as in a running server: each command would take a second to open it.
    const storage = await open(folder)
    t.after(() => storage.close())
    for (let n = 0; n < count; n++) {
      const { id } = await createWorkspace(storage.db, { name: `Shop ${n}` }, NOW)
      await sql`
        insert into contacts (workspace_id, phone, chatapp_user_id, created_at, updated_at)
        select ${id}, phone, user_id, ${NOW}, ${NOW}
        from unnest(${contacts.map(([phone]) => phone)}::text[],
          ${contacts.map(([, userId]) => userId)}::text[]) with ordinality as u (phone, user_id, n)
        order by n`.execute(storage.db)
    }
    await insertMore(storage.db)
    return folder
  }

  const runDoctor = async (folder: string, ...argv: string[]) => {
    const { exit, out, err } = await runAdmin('doctor', '--data', folder, '--json', ...argv)
    return { exit, err, report: out === '' ? undefined : JSON.parse(out) }
  }

  it('exits with 0 when there are no doubles, and received files can be written', async (t) => {
    const folder = await createFolder(t, [
      ['15550100042', 'US.1'],
      ['551143218765', 'US.2'],
      [null, 'US.3'],
    ])
    const { exit, report } = await runDoctor(folder)
    assert.deepEqual([exit, report], [0, { ok: true, data: [], next_after: null }])
    const text = await runAdmin('doctor', '--data', folder)
    assert.deepEqual([text.exit, text.out, text.err], [0, '', 'No problems.\n'])
    const env = { WCRM_MEDIA: '/dev/null/media' }
    const unwritable = await runAdminWith(env, 'doctor', '--data', folder, '--json')
    const [problem] = JSON.parse(unwritable.out).data
    assert.deepEqual(
      [unwritable.exit, problem.check, problem.about, problem.detail],
      [1, 'media_store', 'the folder /dev/null/media', 'Files cannot be written to /dev/null (EACCES).'],
    )
  })

  it('names numbers whose messages nobody sees', async (t) => {
    const folder = await createFolder(t, [], 1, async (db) => {
      await sql`
        insert into provider_updates (dedupe, kind, subject, payload, state, next_attempt_at, received_at)
        values ('m', 'message', '777', '{"message": {"type": "text"}}', 'unmatched', ${NOW}, ${NOW})`.execute(
        db,
      )
    })
    const { exit, report } = await runDoctor(folder)
    assert.deepEqual(
      [exit, report.data.map((one: { check: string; about: string }) => [one.check, one.about])],
      [1, [['messages', 'number 777']]],
    )
  })

  it('lists contacts with the phone line or the user id of another one, and exits with 1', async (t) => {
    const folder = await createFolder(t, [
      ['5511987654321', null],
      ['551187654321', null],
      [null, 'US.1'],
      ['15550100042', 'US.1'],
    ])
    const { exit, report } = await runDoctor(folder)
    assert.equal(exit, 1)
    assert.deepEqual(
      report.data.map((one: any) => [one.check, one.id, one.about, one.of]),
      [
        ['double_phone', '2', 'contact 2', 'contact 1'],
        ['double_user_id', '4', 'contact 4', 'contact 3'],
      ],
    )
    assert.deepEqual([report.ok, report.next_after], [false, null])
    const text = await runAdmin('doctor', '--data', folder)
    assert.equal(text.exit, 1)
    assert.match(text.out, /contact 2\tcontact 1\tContact 2 \(551187654321\) has the phone line/)
    assert.match(text.err, /^2 problems\.\n/)
  })

  it('lists them by pages, of all workspaces or of one', async (t) => {
    const folder = await createFolder(
      t,
      [
        ['5511987654321', null],
        ['551187654321', null],
        [null, 'US.1'],
        ['15550100042', 'US.1'],
        ['5491123456789', 'US.1'],
        ['541123456789', null],
      ],
      2,
    )
    const whole = (await runDoctor(folder)).report.data
    assert.equal(whole.length, 8)
    for (const limit of [1, 2, 3, 7]) {
      const pages = []
      let after: string | null = null
      do {
        const { exit, report }: Awaited<ReturnType<typeof runDoctor>> = await runDoctor(
          folder,
          '--limit',
          String(limit),
          ...(after === null ? [] : ['--after', after]),
        )
        assert.equal(exit, 1)
        assert.ok(report.data.length <= limit)
        pages.push(...report.data)
        after = report.next_after
      } while (after !== null)
      assert.deepEqual(pages, whole)
    }
    const second = (await runDoctor(folder, '--workspace', '2')).report.data
    assert.deepEqual(second, whole.slice(4))
    for (const argv of [
      ['--limit', '0'],
      ['--after', '1:nothing:1'],
      ['--after', '1'],
      ['--after', 'x:double_phone:1'],
      ['--workspace', 'x'],
    ])
      assert.equal((await runDoctor(folder, ...argv)).exit, 2, argv.join(' '))
    assert.equal((await runDoctor(folder, '--workspace', '9')).exit, 3)
  })
})
