import assert from 'node:assert/strict'
import { it } from 'node:test'
import { doAs } from '../calls.ts'
import { everyDatabase } from '../doors.ts'
import { finishExports } from '../exports/files.ts'
import { createSandboxDriver, generatePhone } from '../messaging/fixtures.ts'
import { makeWorkspace } from '../servers.ts'
import { noticeSlowClock } from '../slow-clock.ts'

// Others stop downloads on the server that files share.
everyDatabase(
  'URLs without a key, on a server whose clock is slow',
  (server) => {
    /** Opens the URL that the server makes of this text. */
    const open = async (kind: 'media' | 'export', text: string): Promise<number> => {
      const token = server().app.mediaSealer.seal(text, kind)
      return (await fetch(`${server().url}/${kind === 'media' ? 'media' : 'exports'}/${token}`)).status
    }

    it('those of received files end by the clock of the database', async (test) => {
      const workspace = await makeWorkspace(server())
      const run = doAs(server(), workspace.owner.key)
      await createSandboxDriver(server(), workspace).say({
        from: generatePhone(),
        message: {
          type: 'document',
          document: { data: 'AAAA', filename: 'file.pdf', mime_type: 'application/pdf' },
        },
      })
      await server().settle()
      const { id } = await server()
        .db.selectFrom('messages')
        .select('id')
        .where('workspace_id', '=', workspace.id)
        .executeTakeFirstOrThrow()
      const now = Date.now()
      await noticeSlowClock(test, server())
      const openUntil = (expires: number) => open('media', `${workspace.id} ${id} ${expires}`)
      assert.deepEqual([await openUntil(now - 1000), await openUntil(now + 60_000)], [404, 200])
      const { url, expires_at: end } = await run('messaging_get_media', { message_id: id })
      assert.equal((await fetch(url)).status, 200)
      assert.ok(Date.parse(end) > now + 60_000, 'other servers take it as long')
    })

    it('those of exports end by the clock of the database', async (test) => {
      const workspace = await makeWorkspace(server())
      const run = doAs(server(), workspace.owner.key)
      const { contact } = await run('crm_upsert_contact', { phone: generatePhone() })
      const { id } = (await run('crm_export_person', { contact_id: contact.id })).export
      await finishExports(server())
      const now = Date.now()
      await noticeSlowClock(test, server())
      const openUntil = (expires: number) =>
        open('export', `${workspace.id} ${id} ${workspace.owner.staffId} 1 ${expires}`)
      assert.deepEqual([await openUntil(now - 1000), await openUntil(now + 60_000)], [404, 200])
      const { url, url_expires_at: end } = await run('crm_get_export', { export_id: id })
      assert.equal((await fetch(url)).status, 200)
      assert.ok(Date.parse(end) > now + 60_000, 'other servers take it as long')
    })
  },
  { dedicated: true },
)
