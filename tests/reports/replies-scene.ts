import { applyCloses, applyOutboundMessage, applyReopen } from '../../server/domains/inbox/lifecycle.ts'
import { applyStatus } from '../../server/domains/messaging/message-status.ts'
import { generateReport, nightlyRanges } from '../../server/domains/reports/generate.ts'
import { updateAssignments } from '../../storage/conversations/changes.ts'
import { lockConversation } from '../../storage/conversations/conversations.ts'
import { insertMessages } from '../../storage/messages/messages.ts'
import { inChangeContext, receiveMessage } from '../inbox/conversations.ts'
import type { TestServer } from '../servers.ts'
import { type Fact, isResumed, play, type Step } from './replies-model.ts'

/** A conversation with what happened in it. */
export type Told = {
  id: string
  createdAt: number
  facts: Fact[]
  replies: Map<number, { id: number; providerId: string; at: number; by: number }>
  failed: Set<number>
  read: Set<number>
  assigned: { by: number; at: number } | null
}
export type Scene = {
  /** The current time, ISO 8601 UTC. */
  now: () => string
  server: TestServer
  workspaceId: string
  timezone: string
  /** Ids of the staff members. */
  staff: string[]
}

let serial = 0

const sendReply = async (scene: Scene, told: Told, by: number): Promise<void> => {
  const { server, workspaceId, staff } = scene
  const clock = scene.now()
  const providerId = `wamid.late.${process.pid}.${++serial}`
  await inChangeContext(server, workspaceId, clock, async (context) => {
    const conversation = (await lockConversation(context.tx, workspaceId, told.id))!
    const [id] = await insertMessages(context.tx, workspaceId, [
      {
        conversation_id: told.id,
        channel_id: conversation.channel_id,
        episode: conversation.episode,
        direction: 'outbound',
        type: 'TEXT',
        status: 'sent',
        created_at: clock,
        sent_at: clock,
        staff_id: staff[by]!,
        provider_id: providerId,
      },
    ])
    await applyOutboundMessage(context, conversation, {
      id: id!,
      createdAt: clock,
      staffId: staff[by]!,
      keyId: null,
    })
  })
  told.replies.set(serial, { id: serial, providerId, at: Date.parse(clock), by })
  told.facts.push({ do: 'reply', at: Date.parse(clock), by, id: serial })
}

const report = (scene: Scene, providerId: string, status: 'failed' | 'read'): Promise<unknown> =>
  inChangeContext(scene.server, scene.workspaceId, scene.now(), (context) =>
    applyStatus(context, {
      providerId,
      status,
      at: scene.now(),
      ...(status === 'failed' ? { error: { code: 131026, title: 'Undeliverable', details: null } } : {}),
    }),
  )

/** Lets a reply fail, or be read after all, in the service and in the model. Returns whether anything changes. */
const changeReply = async (scene: Scene, told: Told, step: Step & { do: 'fail' | 'read' }) => {
  const reply = [...told.replies.values()].at(-1 - step.key)
  if (!reply) return false
  await report(scene, reply.providerId, step.do === 'fail' ? 'failed' : 'read')
  // Once more, as providers do.
  await report(scene, reply.providerId, step.do === 'fail' ? 'failed' : 'read')
  if (step.do === 'read') {
    told.read.add(reply.id)
    return told.failed.delete(reply.id)
  }
  if (told.failed.has(reply.id) || told.read.has(reply.id)) return false
  told.failed.add(reply.id)
  if (isResumed(play(told.facts, told.failed), reply.at))
    told.facts.push({ do: 'resume', at: Date.parse(scene.now()) })
  return true
}

const changeState = async (scene: Scene, told: Told, { do: what, by }: Step & { do: 'close' | 'reopen' }) => {
  const { open } = play(told.facts, told.failed)
  if (open !== (what === 'close')) return
  const { server, workspaceId, staff } = scene
  const clock = scene.now()
  await inChangeContext(server, workspaceId, clock, async (context) => {
    const conversation = (await lockConversation(context.tx, workspaceId, told.id))!
    await (what === 'close'
      ? applyCloses(context, [conversation], { by: staff[by]!, keyId: null }, null)
      : applyReopen(context, conversation, staff[by]!, null))
  })
  told.facts.push({ do: what, at: Date.parse(clock), by })
}

const assign = async (scene: Scene, told: Told, by: number): Promise<void> => {
  const { server, workspaceId, staff } = scene
  const clock = scene.now()
  const assignment = { id: told.id, assigned_staff_id: staff[by]!, assigned_team_id: null }
  await updateAssignments(server.db, workspaceId, [assignment], clock, clock)
  told.assigned = { by, at: Date.parse(clock) }
}

/** Takes a step in the service and in the model. */
export const take = async (scene: Scene, told: Told, step: Step): Promise<void> => {
  const { server, workspaceId, timezone } = scene
  const clock = scene.now()
  switch (step.do) {
    case 'receive':
      await receiveMessage(server, workspaceId, told.id, { at: clock })
      told.facts.push({ do: 'receive', at: Date.parse(clock) })
      return
    case 'reply':
      return await sendReply(scene, told, step.by)
    case 'fail':
    case 'read':
      await changeReply(scene, told, step)
      return
    case 'close':
    case 'reopen':
      return await changeState(scene, told, step)
    case 'assign':
      return await assign(scene, told, step.by)
    case 'report':
      for (const range of nightlyRanges(clock, timezone))
        await generateReport(server.db, workspaceId, range, clock)
  }
}
