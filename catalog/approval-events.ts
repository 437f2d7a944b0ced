import { z } from 'zod'
import { Id, Timestamp } from './fields.ts'

/** What events tell of a call that a person decides: nothing of the call itself. */
export const EventApproval = z.object({
  approval: z
    .object({
      id: Id.describe('Approval id.'),
      status: z.string().describe('`pending`, `approved`, `declined`, `expired` or `cancelled`.'),
      operation: z.string().describe('The operation.'),
      staff_id: Id.describe('Staff member of the key that asks.'),
      key_id: Id.describe('The key that asks.'),
      channel_ids: z.array(Id).describe('Channels that the call is about.'),
      expires_at: Timestamp.describe('Until when it can be decided.'),
    })
    .describe('The request.'),
})
export const approvalSample = {
  approval: {
    id: '12',
    status: 'pending',
    operation: 'messaging_send_reply',
    staff_id: '5',
    key_id: '9',
    channel_ids: ['1'],
    expires_at: '2026-10-02T09:30:00.000Z',
  },
}

export const EventDecision = EventApproval.extend({
  decided_by: z
    .object({ staff_id: Id.describe('Staff id.'), name: z.string().describe('Name.') })
    .nullable()
    .describe('Who decided; null when nobody did.'),
})
export const decisionSample = {
  approval: { ...approvalSample.approval, status: 'approved' },
  decided_by: { staff_id: '1', name: 'Olivia Owner' },
}
