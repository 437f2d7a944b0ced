import { z } from 'zod'

/** A text that `parse` accepts; it stays unchanged. */
export const parsedBy = (parse: (text: string) => unknown) =>
  z.string().transform((text, ctx) => {
    try {
      parse(text)
    } catch (error) {
      ctx.addIssue({ code: 'custom', message: (error as Error).message })
    }
    return text
  })
