import { z } from 'zod'
import { Problem } from '../../core/problem.ts'
import { lookUp, outcomeUnknown, type Provider } from '../port.ts'
import { ProviderId } from './answers.ts'
import { at, type Http } from './http.ts'

const Sent = z.object({ messages: z.array(z.object({ id: z.string().min(1) })).min(1) })
const Found = z.object({ data: z.array(z.object({ id: ProviderId })) })

export const messages = ({ ask }: Http): Pick<Provider, 'send' | 'findSent'> => ({
  send: async ({ phoneNumberId }, { to, recipient, reference, replyTo, body }, signal) => {
    const answer = await ask(
      Sent,
      {
        method: 'POST',
        path: at(phoneNumberId, 'messages'),
        json: {
          messaging_product: 'whatsapp',
          recipient_type: 'individual',
          ...(to === undefined ? { recipient } : { to }),
          ...(replyTo === undefined ? {} : { context: { message_id: replyTo } }),
          type: body.type,
          [body.type]: body[body.type],
          biz_opaque_callback_data: reference,
        },
      },
      signal,
    )
    return { id: answer.messages[0]!.id }
  },

  // The true provider has no such list and refuses. One that answered everything it has, whatever is asked,
  // must not pass for having found it.
  findSent: async ({ phoneNumberId }, reference, signal) => {
    const asked = ask(
      z.unknown(),
      { method: 'GET', path: at(phoneNumberId, 'messages'), query: { biz_opaque_callback_data: reference } },
      signal,
    )
    const answer = await lookUp(
      asked.catch((error: unknown) => {
        if (error instanceof Problem && error.code !== 'upstream_unavailable' && !outcomeUnknown(error))
          return undefined
        throw error
      }),
    )
    const found = Found.safeParse(answer)
    if (!found.success || found.data.data.length > 1) return 'unknown'
    return found.data.data[0] ?? 'absent'
  },
})
