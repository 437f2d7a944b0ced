import assert from 'node:assert/strict'
import { Writable } from 'node:stream'
import { it } from 'node:test'
import { sql } from 'kysely'
import { createLogger } from '../../server/logger.ts'
import { everyDatabase, everyDoor } from '../doors.ts'

const lines: string[] = []
const log = createLogger('info', {
  destination: new Writable({
    write: (chunk: Buffer, _encoding, done) => {
      lines.push(...chunk.toString().trim().split('\n'))
      done()
    },
  }),
})

const NAME = 'Wilhelmina Stroganoff'
const PHONE = '+15559110042'

everyDoor(
  'The log',
  (test) => {
    test('has one line for each call, without personal data', async ({ call, as, door, workspace }) => {
      lines.length = 0
      const saved = await call('crm_upsert_contact', { phone: PHONE, name: NAME })
      await call('crm_upsert_contact', { phone: PHONE, name: NAME, dry_run: true })
      await call('crm_search_contacts', { query: PHONE })
      await call('crm_get_contact', { contact_id: '999999999' })
      await call('crm_upsert_contact', { phone: PHONE, name: 5 })
      await as('wc_live_of_nobody')('crm_search_contacts', { query: PHONE })
      const calls = lines.map((line) => JSON.parse(line)).filter(({ msg }) => msg === 'call')
      const own = calls.filter(({ operation }) => /_contacts?$/.test(operation))
      assert.deepEqual(
        own.map(({ operation, status, code, dry_run }) => [operation, status, code, dry_run]),
        [
          ['crm_upsert_contact', saved.status, undefined, undefined],
          ['crm_upsert_contact', 200, undefined, true],
          ['crm_search_contacts', 200, undefined, undefined],
          ['crm_get_contact', 404, 'not_found', undefined],
          ['crm_upsert_contact', 400, 'invalid_input', undefined],
          // Over MCP, who has no key is refused before it is known what is called.
          ...(door.name === 'mcp' ? [] : [['crm_search_contacts', 401, 'unauthenticated', undefined]]),
        ],
      )
      for (const line of own) {
        assert.equal(line.door, door.name)
        assert.match(line.request_id, /^req_/)
        assert.ok(line.duration_ms >= 0)
      }
      for (const { workspace_id: id, key_id: keyId } of own.slice(0, 5)) {
        assert.equal(id, workspace.id)
        assert.match(keyId, /^\d+$/)
      }
      const text = lines.join('\n')
      for (const personal of [NAME, 'Stroganoff', PHONE.slice(1), '15559110043'])
        assert.ok(!text.includes(personal), personal)
    })
  },
  { log },
)

everyDatabase(
  'The log of requests without a call',
  (server) => {
    it('has the route of one that fails, and never its path, which can be all that a file needs', async () => {
      const { url, db, app } = server()
      const seal = (binding: string) => app.mediaSealer.seal(`1 1 1 1 ${Date.now() + 60_000}`, binding)
      const requests: [table: string, route: string, secret: string][] = [
        ['media', '/media/:token', app.mediaSealer.seal(`1 1 ${Date.now() + 60_000}`, 'media')],
        ['exports', '/exports/:token', seal('export')],
        ['short_links', '/message/:code', 'ANED2T5QRU7HG1'],
        ['short_links', '/qr/:file', `${'0123456789abcdef'.repeat(2)}.png`],
      ]
      for (const [table, route, secret] of requests) {
        lines.length = 0
        await sql`alter table ${sql.table(table)} rename to moved`.execute(db)
        try {
          const { status } = await fetch(url + route.replace(/:\w+/, secret))
          assert.equal(status, 500, route)
        } finally {
          await sql`alter table moved rename to ${sql.table(table)}`.execute(db)
        }
        const failed = lines.map((line) => JSON.parse(line)).filter(({ msg }) => msg === 'Request failed')
        assert.deepEqual(
          failed.map((line) => [line.route, line.code]),
          [[route, '42P01']],
        )
        assert.ok(!lines.join('\n').includes(secret), lines.join('\n'))
      }
    })
  },
  { log, dedicated: true },
)
