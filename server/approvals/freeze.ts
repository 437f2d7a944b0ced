import type { Operation } from '../../catalog/index.ts'

type Input = Record<string, unknown>

/**
 * Returns a call with what it only refers to written out as its dry run resolved it, so that what a person saw is
 * what is sent, whatever becomes of the saved reply or of the values of the contact meanwhile. `output`: what the dry
 * run answered.
 */
export const freezeContent = (op: Operation, input: Input, output: Input): Input => {
  const { quick_message_id: quick, ...rest } = input
  if (op.name !== 'messaging_send_reply' || quick === undefined) return input
  const { type, text, media } = output['message'] as {
    type: string
    text: string | null
    media: { url: string | null; file_name: string | null } | null
  }
  if (!media) return { ...rest, text }
  return {
    ...rest,
    media_url: media.url,
    type,
    ...(text === null ? {} : { caption: text }),
    ...(media.file_name === null ? {} : { file_name: media.file_name }),
  }
}
