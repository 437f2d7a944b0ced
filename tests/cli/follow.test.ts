import assert from 'node:assert/strict'
import { PassThrough } from 'node:stream'
import { describe, it } from 'node:test'
import { runCommandLine } from '../../cli/main.ts'
import { eventStreamResponse, eventStreams } from '../event-streams.ts'

const event = { id: '7', type: 'message.received', data: { text: 'Größe 漢字 😀' } }
const next = { id: '8', type: 'message.received', data: { text: 'next' } }

/** Follows two streams, then gets a 401; returns what was printed and the `Last-Event-ID` of each request. */
const follow = async (first: readonly Buffer[], format: readonly string[] = ['--json']) => {
  const responses = [
    eventStreamResponse(first),
    eventStreamResponse([Buffer.from(`id: 8\ndata: ${JSON.stringify(next)}\n\n`)]),
    Response.json({ code: 'unauthenticated', detail: 'The key was revoked.' }, { status: 401 }),
  ]
  const lastEventIds: (string | null)[] = []
  const [stdin, stdout, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()]
  const exit = await runCommandLine(['events', 'list', '--follow', ...format], {
    stdin,
    stdout,
    stderr,
    env: { WCRM_URL: 'http://127.0.0.1:9', WCRM_API_KEY: 'wc_test_key', XDG_CONFIG_HOME: '/nonexistent' },
    fetch: async (_url, init) => {
      lastEventIds.push(new Headers(init?.headers).get('last-event-id'))
      return responses.shift()!
    },
  })
  const lines = (await stdout.end().toArray()).join('').split('\n').filter(Boolean)
  return { exit, lastEventIds, events: lines.map((line) => JSON.parse(line) as unknown) }
}

describe('events list --follow: event stream', { concurrency: true }, () => {
  for (const [form, chunksOf] of Object.entries(eventStreams))
    it(`${form}: the event is printed, and the next connection resumes after its id`, async () => {
      assert.deepEqual(await follow(chunksOf(JSON.stringify(event))), {
        exit: 4,
        lastEventIds: [null, '7', '8'],
        events: [event, next],
      })
    })

  it('--since is where it begins; a list from there too', async () => {
    const id = 'evt_01JABCDEFGHJKMNPQRSTVWXYZ0'
    for (const [since, after] of [
      ['now', id],
      [id, id],
    ] as const) {
      const urls: string[] = []
      const call = async (...flags: string[]) => {
        const [stdin, stdout, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()]
        return await runCommandLine(['events', 'list', ...flags], {
          stdin,
          stdout,
          stderr,
          env: {
            WCRM_URL: 'http://127.0.0.1:9',
            WCRM_API_KEY: 'wc_test_key',
            XDG_CONFIG_HOME: '/nonexistent',
          },
          fetch: async (url, init) => {
            urls.push(`${String(url)} ${init?.body === undefined ? '' : String(init.body as string)}`)
            return String(url).includes('/v1/events')
              ? Response.json({ code: 'unauthenticated', detail: 'Revoked.' }, { status: 401 })
              : Response.json({ data: [], next_cursor: id })
          },
        })
      }
      assert.equal(await call('--since', since), 0)
      assert.deepEqual(urls, [`http://127.0.0.1:9/v1/ops/events_list {"after":"${since}"}`])
      assert.equal(await call('--since', since, '--follow'), 4)
      assert.equal(urls.at(-1), `http://127.0.0.1:9/v1/events?after=${after} `)
    }
  })

  it('--since is also a duration before the time of the server', async () => {
    const bodies: string[] = []
    const call = async (since: string) => {
      const [stdin, stdout, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()]
      const exit = await runCommandLine(['events', 'list', '--since', since], {
        stdin,
        stdout,
        stderr,
        env: { WCRM_URL: 'http://127.0.0.1:9', WCRM_API_KEY: 'wc_test_key', XDG_CONFIG_HOME: '/nonexistent' },
        fetch: async (url, init) => {
          if (String(url).endsWith('events_list')) bodies.push(String(init?.body as string))
          const headers = { 'Workspace-Time-Zone': 'UTC', 'Workspace-Time': '2026-10-09T09:30:00.000Z' }
          return Response.json({ data: [], next_cursor: null }, { headers })
        },
      })
      return { exit, stderr: (await stderr.end().toArray()).join('') }
    }
    assert.equal((await call('90m')).exit, 0)
    assert.deepEqual(bodies, ['{"from":"2026-10-09T08:00:00.000Z"}'])
    const { exit, stderr } = await call('an hour')
    assert.equal(exit, 2)
    assert.match(stderr, /--since must be now, the id of an event or a duration/)
    const long = await call('999999d')
    assert.equal(long.exit, 2)
    assert.match(long.stderr, /--since is at most 36500 days, not "999999d"/)
    assert.equal(bodies.length, 1)
  })

  it('--jq is applied to each event', async () => {
    const first = Buffer.from(`id: 7\ndata: ${JSON.stringify(event)}\n\n`)
    assert.deepEqual((await follow([first], ['--jq', '[.id, .data.text]'])).events, [
      ['7', 'Größe 漢字 😀'],
      ['8', 'next'],
    ])
  })

  it('an event without closing blank line is not printed, and the connection resumes before it', async () => {
    assert.deepEqual(await follow([Buffer.from('id: 7\ndata: {"cut":')]), {
      exit: 4,
      lastEventIds: [null, null, '8'],
      events: [next],
    })
  })
})
