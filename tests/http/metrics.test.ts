import assert from 'node:assert/strict'
import { it } from 'node:test'
import { everyDatabase } from '../doors.ts'
import { createReplyScene } from '../messaging/replies.ts'

everyDatabase('Metrics', (server) => {
  it('count calls of the provider and runs of background jobs, by how they ended', async () => {
    const scene = await createReplyScene(server())
    const reply = { conversation_id: scene.id, text: 'It arrives today.' }
    const sent = await scene.call('messaging_send_reply', reply, { confirm: 'send' })
    assert.equal(sent.status, 201, sent.text)
    await server().app.jobs.job('approvals').runOnce()
    const text = await (await fetch(`${server().url}/metrics`)).text()
    for (const line of [
      /^wcrm_provider_call_duration_seconds_count\{call="send",outcome="ok"\} [1-9]/m,
      /^wcrm_job_run_duration_seconds_count\{job="approvals",outcome="ok"\} [1-9]/m,
    ])
      assert.match(text, line)
  })
})
